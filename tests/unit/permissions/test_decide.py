"""What is decided about files, addresses and tools, with the reason people read."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide

OWN = "/home/someone/.agent"


def change(**fields: object) -> Policy:
    return msgspec.structs.replace(POLICY, homes=(OWN,), session_folder=f"{OWN}/s", **fields)


PLAIN = change()
TOOLS = change(allow_all_tools=True)
PATHS = change(allow_all_paths=True)
ALL = change(allow_all_tools=True, allow_all_paths=True, allow_all_urls=True)
OUTSIDE = "{} is outside the allowed directories."
PROTECTED = "{} is protected: it can make things run."


@pytest.mark.parametrize(
    ("path", "policy", "verdict", "reason"),
    [
        ("/srv/project/a", PLAIN, "allow", "The path may be read."),
        ("/etc/a", PLAIN, "ask", OUTSIDE.format("/etc/a")),
        ("/etc/a", PATHS, "allow", "The path may be read."),
        ("/etc/a", TOOLS, "ask", OUTSIDE.format("/etc/a")),
        ("/opt/a", change(readable=("/opt",)), "allow", "The path may be read."),
        ("/proc/1/maps", ALL, "deny", None),
        (
            "/etc/a",
            change(allow=rules("read(/etc/a)")),
            "allow",
            "The rule read(/etc/a) allows it.",
        ),
        ("/etc/b", change(allow=rules("read(/etc/a)")), "ask", OUTSIDE.format("/etc/b")),
        ("/etc/b", change(allow=rules("read")), "ask", OUTSIDE.format("/etc/b")),
        ("/srv/project/.env", change(deny=rules("read(.env)")), "deny", None),
        ("/srv/project/.env/a", change(deny=rules("read(.env)")), "deny", None),
        (
            "/srv/project/a",
            change(ask=rules("read(a)")),
            "ask",
            "The rule read(a) wants to be asked.",
        ),
        ("/srv/project/a/b", change(ask=rules("read(a)")), "ask", None),
        ("/srv/project/a", change(ask=rules("read(a)"), deny=rules("read(a)")), "deny", None),
        ("/srv/project/a", change(ask=rules("read(a)"), allow=rules("read(a)")), "ask", None),
        ("/etc/a", change(allow=rules("write(/etc/a)")), "ask", OUTSIDE.format("/etc/a")),
    ],
)
def test_reading_a_file(path: str, policy: Policy, verdict: str, reason: str | None) -> None:
    decision = decide(Access(kind="read", target=path, mutates=False), policy)
    assert decision.verdict == verdict
    assert reason is None or decision.reason == reason


@pytest.mark.parametrize(
    ("path", "policy", "verdict", "reason"),
    [
        ("/srv/project/a", PLAIN, "ask", "No rule allows writing /srv/project/a."),
        ("/srv/project/a", TOOLS, "allow", "All tools are allowed."),
        ("/srv/project/a", PATHS, "ask", "No rule allows writing /srv/project/a."),
        ("/srv/project/a", change(allow=rules("write")), "allow", "The rule write allows it."),
        (
            "/srv/project/a",
            change(allow=rules("write(a)")),
            "allow",
            "The rule write(a) allows it.",
        ),
        ("/srv/project/a", change(allow=rules("write(b)")), "ask", None),
        ("/srv/project/a", change(allow=rules("read(a)")), "ask", None),
        ("/etc/a", TOOLS, "ask", OUTSIDE.format("/etc/a")),
        ("/etc/a", ALL, "allow", "All tools are allowed."),
        ("/etc/a", change(allow=rules("write")), "ask", OUTSIDE.format("/etc/a")),
        ("/etc/a", change(allow=rules("write(a)")), "ask", OUTSIDE.format("/etc/a")),
        (
            "/etc/a",
            change(allow=rules("write(/etc/a)")),
            "allow",
            "The rule write(/etc/a) allows it.",
        ),
        ("/etc/b", change(allow=rules("write(/etc/a)")), "ask", OUTSIDE.format("/etc/b")),
        ("/etc/a", change(allow_all_paths=True, allow=rules("write")), "allow", None),
        (
            "/srv/project/.git/config",
            TOOLS,
            "ask",
            PROTECTED.format("/srv/project/.git/config"),
        ),
        ("/srv/project/.git/config", ALL, "allow", "All tools are allowed."),
        (
            "/srv/project/.git/config",
            change(allow_all_tools=True, allow_all_paths=True, writable=("/srv/project",)),
            "ask",
            PROTECTED.format("/srv/project/.git/config"),
        ),
        (
            "/etc/a",
            change(allow_all_tools=True, allow_all_paths=True, writable=("/etc",)),
            "allow",
            "All tools are allowed.",
        ),
        (
            "/etc/a",
            change(allow_all_tools=True, allow_all_paths=True, writable=("/srv/project",)),
            "deny",
            "The sandbox does not let /etc/a be written.",
        ),
        (f"{OWN}/a", ALL, "deny", f"{OWN}/a is the agent's own; tools never write there."),
        (f"{OWN}/s/plan.md", PLAIN, "allow", "It is a file of the session itself."),
        (f"{OWN}/s/events", ALL, "deny", None),
        ("/proc/1/maps", ALL, "deny", None),
        ("/srv/project/a", change(allow_all_tools=True, deny=rules("write(a)")), "deny", None),
        ("/srv/project/a/b", change(allow_all_tools=True, deny=rules("write(a)")), "deny", None),
        (
            "/srv/project/a/b",
            change(allow_all_tools=True, ask=rules("write(a)")),
            "ask",
            "The rule write(a) wants to be asked.",
        ),
    ],
)
def test_writing_a_file(path: str, policy: Policy, verdict: str, reason: str | None) -> None:
    decision = decide(Access(kind="write", target=path), policy)
    assert decision.verdict == verdict
    assert reason is None or decision.reason == reason


@pytest.mark.parametrize(
    ("path", "policy", "verdict"),
    [
        ("/srv/project/a", TOOLS, "allow"),
        ("/etc/a", ALL, "ask"),
        (
            "/etc/a",
            msgspec.structs.replace(ALL, allow_destructive=True),
            "allow",
        ),
    ],
)
def test_deleting_a_file_elsewhere_is_asked_about_even_if_all_is_allowed(
    path: str, policy: Policy, verdict: str
) -> None:
    deleting = Access(kind="write", target=path, detail={"deletes": True})
    decision = decide(deleting, policy)
    assert decision.verdict == verdict
    if verdict == "ask":
        assert decision.reason == f"It would delete {path}, outside the workspace."
    other = Access(kind="write", target=path, detail={"deletes": "true"})
    assert decide(other, policy).verdict == "allow"


@pytest.mark.parametrize(
    ("policy", "verdict", "reason"),
    [
        (PLAIN, "ask", "No rule allows the address https://a.test/x."),
        (TOOLS, "ask", None),
        (ALL, "allow", "All addresses are allowed."),
        (change(allow=rules("url(a.test)")), "allow", "The rule url(a.test) allows it."),
        (change(allow=rules("url")), "allow", "The rule url allows it."),
        (change(allow=rules("url(b.test)")), "ask", None),
        (change(allow_all_urls=True, deny=rules("url(a.test)")), "deny", None),
        (change(allow_all_urls=True, deny=rules("url(http://a.test:1)")), "deny", None),
        (
            change(allow_all_urls=True, ask=rules("url(http://a.test)")),
            "ask",
            "The rule url(http://a.test) wants to be asked.",
        ),
    ],
)
def test_opening_an_address(policy: Policy, verdict: str, reason: str | None) -> None:
    decision = decide(Access(kind="url", target="https://a.test/x"), policy)
    assert decision.verdict == verdict
    assert reason is None or decision.reason == reason


@pytest.mark.parametrize(
    ("access", "policy", "verdict", "reason"),
    [
        (Access(kind="custom-tool", target="x"), PLAIN, "ask", "No rule allows the tool x."),
        (Access(kind="memory"), PLAIN, "ask", "No rule allows the tool memory."),
        (Access(kind="memory"), change(allow=rules("memory")), "allow", None),
        (Access(kind="custom-tool", target="x"), TOOLS, "allow", "All tools are allowed."),
        (Access(kind="custom-tool", target="x"), change(allow=rules("x")), "allow", None),
        (
            Access(kind="custom-tool", target="x"),
            change(allow_all_tools=True, deny=rules("x")),
            "deny",
            "The rule x forbids it.",
        ),
        (
            Access(kind="custom-tool", target="x"),
            change(allow_all_tools=True, ask=rules("x")),
            "ask",
            "The rule x wants to be asked.",
        ),
        (
            Access(kind="mcp", target="write-x", detail={"serverName": "write", "toolName": "x"}),
            change(allow_all_tools=True, deny=rules("write")),
            "deny",
            None,
        ),
        (
            Access(kind="mcp", target="write-x", detail={"serverName": "write", "toolName": "x"}),
            change(allow_all_tools=True, ask=rules("write")),
            "ask",
            "The rule write wants to be asked.",
        ),
        (Access(kind="none"), PLAIN, "allow", "It touches nothing."),
    ],
)
def test_using_a_tool(access: Access, policy: Policy, verdict: str, reason: str | None) -> None:
    decision = decide(access, policy)
    assert decision.verdict == verdict
    assert reason is None or decision.reason == reason


@pytest.mark.parametrize(
    ("access", "fields", "verdict"),
    [
        (Access(kind="read", target="/srv/project/a"), {}, "ask"),
        (Access(kind="shell", target="ls"), {}, "ask"),
        (Access(kind="none"), {}, "allow"),
        (Access(kind="read", target="/srv/project/a"), {"allow_all_tools": True}, "allow"),
        (Access(kind="write", target="/srv/project/a"), {"allow": rules("write")}, "allow"),
        (Access(kind="read", target="/proc/1/maps"), {}, "deny"),
    ],
)
def test_a_client_that_decides_is_asked_about_what_no_rule_decides(
    access: Access, fields: dict[str, object], verdict: str
) -> None:
    decision = decide(access, change(always_ask=True, **fields))
    assert decision.verdict == verdict
    if verdict == "ask":
        assert decision.reason == "The client decides what no rule decides."


def test_a_command_is_read_in_its_own_language() -> None:
    policy = PLAIN
    assert decide(Access(kind="shell", target="ls"), policy).verdict == "allow"
    other = Access(kind="shell", target="ls", interpreter="powershell")
    assert decide(other, policy).verdict == "ask"


FIRST_CALL = """
import sys
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide
policy = Policy(cwd="/srv/project", roots=("/srv/project",), home="/home/someone")
assert decide(Access(kind="read", target="/srv/project/a"), policy).verdict == "allow"
print([name for name in sys.modules if name == "trimtab.permissions.rules"])
"""


def test_a_first_call_without_rules_imports_nothing_that_compares_rules() -> None:
    argv = [sys.executable, "-c", FIRST_CALL]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_command_is_judged_by_what_is_on_the_disk_now(tmp_path: Path) -> None:
    """The same text was judged as before, though a file had come that is named like an option."""
    place = str(tmp_path)
    policy = change(cwd=place, roots=(place,), allow=rules("shell(git add)"))
    command = Access(kind="shell", target="git add *", mutates=True)
    assert decide(command, policy).verdict == "allow"
    (tmp_path / "-f").touch()
    assert decide(command, policy).verdict == "ask"
