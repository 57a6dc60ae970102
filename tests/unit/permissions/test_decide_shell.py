"""What is decided about commands under one policy after another, with the reason people read."""

import os
from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY, rules
from trimtab.contracts.permission import Policy
from trimtab.permissions.decide_shell import decide_shell


def change(**fields: object) -> Policy:
    return msgspec.structs.replace(POLICY, **fields)


PROTECTED = "is protected: it can make things run."
OWN = "/home/someone/.agent"
FENCED = "which only the fence keeps from a command."
POLICIES = {
    "PLAIN": POLICY,
    "RULES": change(allow=rules("shell(git push)", "shell(make)", "write(out.txt)")),
    "SHELL": change(allow=rules("shell")),
    "WRITE": change(allow=rules("write", "shell(cp)", "shell(git commit)")),
    "NAMED": change(allow=rules("write(/etc/x)", "write(~/y)", "write(z)")),
    "TOOLS": change(allow_all_tools=True),
    "ALL": change(allow_all_tools=True, allow_all_paths=True),
    "PATHS": change(allow_all_paths=True, allow=rules("write", "shell(cp)")),
    "CONFINED": change(confined=True),
    "FREELY": change(allow_all_tools=True, allow_destructive=True),
    "DENY": change(
        allow_all_tools=True, deny=rules("shell(rm)", "url(evil.test)", "write(b)", "read(.env)")
    ),
    "DENY ALL": change(allow_all_tools=True, deny=rules("shell")),
    "DENY WRITE": change(allow_all_tools=True, deny=rules("write")),
    "ASK": change(allow_all_tools=True, ask=rules("shell(npm publish)", "read(.env)", "write(b)")),
    "HOMES": change(
        allow_all_tools=True, allow_all_paths=True, homes=(OWN,), session_folder=f"{OWN}/s"
    ),
    "SESSION": change(homes=(OWN,), session_folder=f"{OWN}/s"),
    "PROGRAMS": change(git_programs="core.fsmonitor", allow=rules("shell(git push)")),
    "READ": change(allow=rules("read(/opt/lib/)", "shell(cp)", "shell(make)")),
    "READ CONFINED": change(confined=True, allow=rules("read(/opt/lib/)")),
}
ALL_TOOLS = "All tools are allowed."
ONLY_READS = "It only reads, inside the workspace."
IN_SANDBOX = "It runs in the sandbox, where commands need no permission."
BELOW = "It only reads, below /opt/lib, where a rule allows that."


@pytest.mark.parametrize(
    ("policy", "command", "reason"),
    [
        ("PLAIN", "ls", ONLY_READS),
        ("PLAIN", "ls *", ONLY_READS),
        ("PLAIN", "ls > /dev/null", ONLY_READS),
        ("PLAIN", "sort $x", "It seems to only read, inside the workspace."),
        ("PLAIN", "ls -d sub/.. | wc -l", ONLY_READS),
        ("RULES", "git push", "Allowed by shell(git push)."),
        ("RULES", "git push; make", "Allowed by shell(git push), shell(make)."),
        ("RULES", "make; git push; make", "Allowed by shell(make), shell(git push)."),
        ("RULES", "ls; make", "Allowed by shell(make)."),
        ("RULES", "make > out.txt", "Allowed by shell(make)."),
        ("RULES", "git status", ONLY_READS),
        ("SHELL", "make", "Allowed by shell."),
        ("SHELL", "git add .vscode/tasks.json", "Allowed by shell."),
        ("WRITE", "touch a b", "Allowed by write."),
        ("WRITE", "git commit .vscode/tasks.json", "Allowed by shell(git commit)."),
        ("WRITE", "echo x > a", ONLY_READS),
        ("WRITE", "rm a", "Allowed by write."),
        ("NAMED", "echo x > z", ONLY_READS),
        ("NAMED", "echo x > sub/z", ONLY_READS),
        ("NAMED", "touch z", "Allowed by write(z)."),
        ("TOOLS", "make", ALL_TOOLS),
        ("TOOLS", "make $x", ALL_TOOLS),
        ("TOOLS", "echo x > a", ALL_TOOLS),
        ("TOOLS", "git add .vscode/tasks.json", ALL_TOOLS),
        ("TOOLS", "git checkout .vscode/tasks.json", ALL_TOOLS),
        ("TOOLS", "git config user.name me", ALL_TOOLS),
        ("TOOLS", "git mv a b", ALL_TOOLS),
        ("TOOLS", "rm a", ALL_TOOLS),
        ("ALL", "cp a /etc/b", ALL_TOOLS),
        ("ALL", "cp a .vscode/tasks.json", ALL_TOOLS),
        ("ALL", "cat /etc/b", ALL_TOOLS),
        ("PATHS", "cat /etc/b", ONLY_READS),
        ("PATHS", "cp a .vscode/tasks.json", "Allowed by shell(cp)."),
        ("PATHS", "echo x > .vscode/tasks.json", ONLY_READS),
        ("PATHS", "echo x > /etc/a", ONLY_READS),
        ("CONFINED", "make", IN_SANDBOX),
        ("FREELY", "rm -r a", ALL_TOOLS),
        ("FREELY", "rm $x", ALL_TOOLS),
        ("DENY", "ls", ALL_TOOLS),
        ("DENY", "touch c", ALL_TOOLS),
        ("DENY", "frob", ALL_TOOLS),
        ("DENY WRITE", "ls", ALL_TOOLS),
        ("DENY WRITE", "touch a", ALL_TOOLS),
        ("ASK", "npm test", ALL_TOOLS),
        ("HOMES", "echo x > /home/someone/.agent/s/plan.md", ALL_TOOLS),
        ("HOMES", "cp a /home/someone/.agent/s/plan.md", ALL_TOOLS),
        ("HOMES", "cat /home/someone/.agent/a", ALL_TOOLS),
        ("HOMES", "echo x > /dev/tty", ALL_TOOLS),
        ("HOMES", "echo x > /dev/null", ALL_TOOLS),
        ("SESSION", "echo x > /home/someone/.agent/s/plan.md", ONLY_READS),
        ("SESSION", "echo x > /home/someone/.agent/s/files/a", ONLY_READS),
        ("PROGRAMS", "git push", "Allowed by shell(git push)."),
        ("PROGRAMS", "ls", ONLY_READS),
        ("READ", "cat /opt/lib/a", BELOW),
        ("READ", "cp /opt/lib/a b", "Allowed by shell(cp)."),
        ("READ", "cp /opt/lib/ b", "Allowed by shell(cp)."),
        ("READ", "cp /opt/lib b", "Allowed by shell(cp)."),
        ("READ", "make -C /opt/lib/", "Allowed by shell(make)."),
        ("READ", "make < /opt/lib/a", "Allowed by shell(make)."),
        ("READ", "cat $x /opt/lib/a", BELOW),
        ("READ", "ls; cat /opt/lib/a; make", "Allowed by shell(make)."),
        ("READ CONFINED", "cat /opt/lib/a", BELOW),
        ("READ CONFINED", "cp /opt/lib/a b", IN_SANDBOX),
    ],
)
def test_what_is_allowed_says_by_what(policy: str, command: str, reason: str) -> None:
    decision = decide_shell(command, POLICIES[policy])
    assert (decision.verdict, decision.reason) == ("allow", reason)


@pytest.mark.parametrize(
    ("policy", "command", "reason"),
    [
        ("PLAIN", "ls > out.txt", "No rule allows writing /srv/project/out.txt."),
        ("PLAIN", "ls > $x", "It writes a file whose name is not known yet."),
        ("PLAIN", "make", "No rule allows make."),
        ("PLAIN", "make; make; frob", "No rule allows make, frob."),
        ("PLAIN", "cat /etc/x", "/etc/x is outside the allowed directories."),
        ("PLAIN", "cat /etc/x /etc/y", "/etc/x is outside the allowed directories."),
        ("PLAIN", "$x", "It is not fixed yet: the name of a command is not known before it runs."),
        ("PLAIN", "'unclosed", "It cannot be read with certainty: a quote is not closed."),
        (
            "PLAIN",
            "PATH=/x ls",
            "It does more than it seems: PATH decides what programs load or run.",
        ),
        ("PLAIN", "rm -r a", "It cannot be undone: it deletes recursively."),
        ("PLAIN", "rm $x", "It cannot be undone: what it deletes is not known before it runs."),
        ("PLAIN", "rm /etc/x", "It would delete /etc/x, outside the workspace."),
        ("PLAIN", "rm a/..", "It does more than it seems: a/.. must not be removed."),
        ("PLAIN", "rm a/../..", "It would delete /srv/project/a/../.., outside the workspace."),
        (
            "PLAIN",
            "rm ../project",
            "It would delete /srv/project/../project, outside the workspace.",
        ),
        (
            "PLAIN",
            "rm ../project/",
            "It would delete /srv/project/../project/, outside the workspace.",
        ),
        ("PLAIN", "rm /srv/project/", "It would delete /srv/project/, outside the workspace."),
        ("PLAIN", "rm a/", "No rule allows rm."),
        ("RULES", "make > other.txt", "No rule allows writing /srv/project/other.txt."),
        ("RULES", "make < /etc/x", "/etc/x is outside the allowed directories."),
        ("RULES", "make; frob", "No rule allows frob."),
        (
            "RULES",
            "make; sort $x",
            "It may do more than it seems: sort: a word that is not known may be an option that does more.",
        ),
        ("SHELL", "cp a /etc/b", "/etc/b is outside the allowed directories."),
        ("SHELL", "cat /etc/x", "/etc/x is outside the allowed directories."),
        (
            "SHELL",
            "cp a .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "WRITE",
            "touch a .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "WRITE",
            "touch a /etc/b",
            "No rule allows touch, and /etc/b is outside the allowed directories.",
        ),
        (
            "WRITE",
            "cp a .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "WRITE",
            "cp a .vscode/tasks.json; git commit .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "WRITE",
            "echo x > .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        ("WRITE", "echo x > /etc/a", "/etc/a is outside the allowed directories."),
        ("NAMED", "echo x > /opt/z", "/opt/z is outside the allowed directories."),
        ("NAMED", "touch z y", "No rule allows touch."),
        ("TOOLS", "cp a /etc/b", "/etc/b is outside the allowed directories."),
        ("TOOLS", "cat /etc/b", "/etc/b is outside the allowed directories."),
        ("TOOLS", "echo x > /etc/b", "/etc/b is outside the allowed directories."),
        (
            "TOOLS",
            "echo x > .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "TOOLS",
            "cp a .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        (
            "TOOLS",
            "git add .vscode/tasks.json > .vscode/tasks.json",
            "/srv/project/.vscode/tasks.json is protected: it can make things run.",
        ),
        ("TOOLS", "git config core.hooksPath h", f"/srv/project/.git/config {PROTECTED}"),
        ("TOOLS", "git log --output=.git/hooks/x", f"/srv/project/.git/hooks/x {PROTECTED}"),
        ("TOOLS", "git mv a .mcp.json", f"/srv/project/.mcp.json {PROTECTED}"),
        ("TOOLS", "git clone . .git/hooks/x", f"/srv/project/.git/hooks/x {PROTECTED}"),
        ("TOOLS", "rm -r a", "It cannot be undone: it deletes recursively."),
        ("TOOLS", "rm $x", "It cannot be undone: what it deletes is not known before it runs."),
        ("TOOLS", "rm /etc/x", "It would delete /etc/x, outside the workspace."),
        ("CONFINED", "cat /etc/b", "/etc/b is outside the allowed directories."),
        ("CONFINED", "cp a /etc/b", "/etc/b is outside the allowed directories."),
        ("CONFINED", "rm -r a", "It cannot be undone: it deletes recursively."),
        ("FREELY", "rm /etc/x", "/etc/x is outside the allowed directories."),
        (
            "DENY",
            "$x",
            "A rule forbids some commands, and it is not certain which ones run: the name of a command is not known before it runs.",
        ),
        ("DENY", "frob rm", "A rule forbids rm, which frob may start."),
        (
            "DENY",
            "python -c 1",
            "A rule forbids some commands, and python runs code that is not read.",
        ),
        (
            "DENY",
            "'unclosed",
            "A rule forbids some commands, and it is not certain which ones run: a quote is not closed.",
        ),
        (
            "DENY",
            "ls `pwd`",
            "A rule forbids some commands, and it is not certain which ones run: it uses backticks.",
        ),
        (
            "DENY",
            "PATH=/x ls",
            "A rule forbids some commands, and it is not certain which ones run: PATH decides what programs load or run.",
        ),
        ("ASK", "npm publish", "The rule shell(npm publish) wants npm publish to be asked about."),
        (
            "ASK",
            "cat .env",
            "The rule read(.env) wants reading /srv/project/.env to be asked about.",
        ),
        ("ASK", "touch b", "The rule write(b) wants writing /srv/project/b to be asked about."),
        ("ASK", "echo x > b", "The rule write(b) wants writing /srv/project/b to be asked about."),
        ("HOMES", "cp a /home/someone/.agent/a", "/home/someone/.agent/a is the agent's own."),
        (
            "SESSION",
            "echo x > /home/someone/.agent/s/plan.md > a",
            "No rule allows writing /srv/project/a.",
        ),
        (
            "PROGRAMS",
            "git status",
            "The setting core.fsmonitor of this repository makes git start a program.",
        ),
        (
            "PROGRAMS",
            "ls; git log",
            "The setting core.fsmonitor of this repository makes git start a program.",
        ),
        ("PROGRAMS", "git log > a", "No rule allows writing /srv/project/a."),
        ("READ", "cat /opt/lib/.env", "/opt/lib/.env is outside the allowed directories."),
        ("READ", "cat /opt/lib/a /etc/b", "/etc/b is outside the allowed directories."),
        (
            "READ CONFINED",
            "cp /opt/lib/ b",
            f"/opt/lib/ may hold secrets, {FENCED}",
        ),
        ("READ CONFINED", "cp a /etc/b", "/etc/b is outside the allowed directories."),
        (
            "READ",
            "cd /opt/lib/ && make",
            f"/opt/lib/ may hold secrets, {FENCED}",
        ),
    ],
)
def test_what_is_asked_about_says_why(policy: str, command: str, reason: str) -> None:
    decision = decide_shell(command, POLICIES[policy])
    assert (decision.verdict, decision.reason) == ("ask", reason)


@pytest.mark.parametrize(
    ("policy", "command", "reason"),
    [
        ("DENY", "rm a", "The rule shell(rm) forbids rm."),
        (
            "DENY",
            "curl https://evil.test/x",
            "The rule url(evil.test) forbids https://evil.test/x.",
        ),
        ("DENY", "echo x > b", "The rule write(b) forbids writing /srv/project/b."),
        ("DENY", "touch sub/b", "The rule write(b) forbids writing /srv/project/sub/b."),
        ("DENY", "cat .env", "The rule read(.env) forbids reading /srv/project/.env."),
        ("DENY", "cat sub/.env", "The rule read(.env) forbids reading /srv/project/sub/.env."),
        ("DENY", "touch .env", "The rule read(.env) forbids reading /srv/project/.env."),
        ("DENY", "git show HEAD:.env", "The rule read(.env) forbids reading /srv/project/.env."),
        ("DENY ALL", "ls", "The rule shell forbids ls."),
        ("DENY ALL", "$x", "The rule shell forbids all commands."),
        ("DENY ALL", "python -c 1", "The rule shell forbids python."),
        ("DENY WRITE", "ls > a", "The rule write forbids writing files."),
        ("DENY WRITE", "ls > $x", "The rule write forbids writing files."),
        (
            "HOMES",
            "echo x > /home/someone/.agent/a",
            "/home/someone/.agent/a is the agent's own; commands never write there.",
        ),
        (
            "HOMES",
            "echo x > /home/someone/.agent/s/other",
            "/home/someone/.agent/s/other is the agent's own; commands never write there.",
        ),
        ("HOMES", "echo x > /dev/sda", "/dev/sda is in the folder of devices; it is not written."),
        (
            "HOMES",
            "echo x > /proc/x",
            "/proc/x is not a file but the kernel's (/proc); it is not written.",
        ),
        (
            "HOMES",
            "echo x > $x; echo y > /proc/x",
            "/proc/x is not a file but the kernel's (/proc); it is not written.",
        ),
    ],
)
def test_what_is_denied_says_by_what(policy: str, command: str, reason: str) -> None:
    decision = decide_shell(command, POLICIES[policy])
    assert (decision.verdict, decision.reason) == ("deny", reason)


@pytest.mark.parametrize(
    ("policy", "command", "rule"),
    [
        ("RULES", "git push", "shell(git push)"),
        ("RULES", "git push; make", "shell(git push)"),
        ("RULES", "make; git push; make", "shell(make)"),
        ("RULES", "ls; make", "shell(make)"),
        ("RULES", "make > out.txt", "shell(make)"),
        ("SHELL", "make", "shell"),
        ("SHELL", "git add .vscode/tasks.json", "shell"),
        ("WRITE", "touch a b", "write"),
        ("WRITE", "git commit .vscode/tasks.json", "shell(git commit)"),
        ("WRITE", "rm a", "write"),
        ("NAMED", "touch z", "write(z)"),
        ("PATHS", "cp a .vscode/tasks.json", "shell(cp)"),
        ("DENY", "rm a", "shell(rm)"),
        ("DENY", "curl https://evil.test/x", "url(evil.test)"),
        ("DENY", "echo x > b", "write(b)"),
        ("DENY", "touch sub/b", "write(b)"),
        ("DENY", "cat .env", "read(.env)"),
        ("DENY", "cat sub/.env", "read(.env)"),
        ("DENY", "touch .env", "read(.env)"),
        ("DENY", "git show HEAD:.env", "read(.env)"),
        ("DENY ALL", "ls", "shell"),
        ("DENY ALL", "$x", "shell"),
        ("DENY ALL", "python -c 1", "shell"),
        ("DENY WRITE", "ls > a", "write"),
        ("DENY WRITE", "ls > $x", "write"),
        ("ASK", "npm publish", "shell(npm publish)"),
        ("ASK", "cat .env", "read(.env)"),
        ("ASK", "touch b", "write(b)"),
        ("ASK", "echo x > b", "write(b)"),
        ("PROGRAMS", "git push", "shell(git push)"),
        ("READ", "cp /opt/lib/a b", "shell(cp)"),
        ("READ", "cp /opt/lib/ b", "shell(cp)"),
        ("READ", "cp /opt/lib b", "shell(cp)"),
        ("READ", "make -C /opt/lib/", "shell(make)"),
        ("READ", "make < /opt/lib/a", "shell(make)"),
        ("READ", "ls; cat /opt/lib/a; make", "shell(make)"),
    ],
)
def test_a_decision_by_a_rule_names_it(policy: str, command: str, rule: str) -> None:
    decision = decide_shell(command, POLICIES[policy])
    assert str(decision.rule) == rule


@pytest.mark.parametrize(
    ("policy", "command", "harmless", "plain"),
    [
        ("PLAIN", "ls", True, ["ls"]),
        ("PLAIN", "ls *", True, None),
        ("PLAIN", "sort $x", True, None),
        ("PLAIN", "ls -d sub/.. | wc -l", True, ["ls", "wc"]),
        ("RULES", "git push", False, None),
        ("RULES", "git push; make", False, None),
        ("RULES", "make; git push; make", False, None),
        ("RULES", "ls; make", False, None),
        ("RULES", "git status", True, None),
        ("SHELL", "make", False, None),
        ("SHELL", "git add .vscode/tasks.json", False, None),
        ("WRITE", "touch a b", False, None),
        ("WRITE", "git commit .vscode/tasks.json", False, None),
        ("WRITE", "rm a", False, None),
        ("NAMED", "touch z", False, None),
        ("PATHS", "cat /etc/b", True, ["cat"]),
        ("PATHS", "cp a .vscode/tasks.json", False, None),
        ("PROGRAMS", "git push", False, None),
        ("PROGRAMS", "ls", True, ["ls"]),
        ("READ", "cat /opt/lib/a", True, ["cat"]),
        ("READ", "cp /opt/lib/a b", False, None),
        ("READ", "cp /opt/lib/ b", False, None),
        ("READ", "cp /opt/lib b", False, None),
        ("READ", "make -C /opt/lib/", False, None),
        ("READ", "make < /opt/lib/a", False, None),
        ("READ", "cat $x /opt/lib/a", True, None),
        ("READ", "ls; cat /opt/lib/a; make", False, None),
        ("READ CONFINED", "cat /opt/lib/a", True, ["cat"]),
    ],
)
def test_what_only_reads_belongs_behind_the_fence_unless_it_is_plain(
    policy: str, command: str, harmless: bool, plain: list[str] | None
) -> None:
    decision = decide_shell(command, POLICIES[policy])
    assert decision.harmless is harmless
    assert decision.plain == (None if plain is None else frozenset(plain))


@pytest.mark.parametrize(
    ("command", "deny", "denied"),
    [
        ("cat *", "read(secret.txt)", True),
        ("cat s?cret.txt", "read(secret.txt)", True),
        ("cat [s]*", "read(secret.txt)", True),
        ("cat p*", "read(secret.txt)", False),
        ("cat *", "read(.env)", False),
        ("shopt -s dotglob; cat *", "read(.env)", True),
        ("cat .e*", "read(.env)", True),
        ("cat link", "read(link)", True),
        ("cat link", "read(secret.txt)", True),
        ("cat plain.txt", "read(secret.txt)", False),
        ("git show HEAD:sub/secret.txt", "read(secret.txt)", True),
    ],
)
def test_rules_that_deny_reading_look_at_the_files_of_patterns_and_links(
    tmp_path: Path, command: str, deny: str, denied: bool
) -> None:
    place = tmp_path.resolve()
    for name in ("secret.txt", "plain.txt", ".env"):
        (place / name).write_text("x")
    (place / "link").symlink_to(place / "secret.txt")
    policy = change(cwd=str(place), roots=(str(place),), allow_all_tools=True, deny=rules(deny))
    assert (decide_shell(command, policy).verdict == "deny") is denied


def test_the_files_of_a_pattern_outside_are_asked_about(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "work").mkdir()
    (place / "outside").write_text("x")
    (place / "work" / "link").symlink_to(place / "outside")
    policy = change(cwd=str(place / "work"), roots=(str(place / "work"),))
    assert decide_shell("cat l*", policy).verdict == "ask"
    assert decide_shell("cat m*", policy).verdict == "allow"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("rm -r a; git reset --hard", "It cannot be undone: it deletes recursively."),
        (
            'bash -c "$x"; source /dev/stdin',
            "It is not fixed yet: a script is put together only when it runs.",
        ),
        (
            "PATH=/x ls; LD_PRELOAD=a ls",
            "It does more than it seems: PATH decides what programs load or run.",
        ),
    ],
)
def test_the_first_of_several_reasons_is_told(command: str, reason: str) -> None:
    assert decide_shell(command, POLICY).reason == reason


@pytest.mark.parametrize(
    ("command", "verdict"), [("echo x > /etc/x", "allow"), ("echo x > /etc/xy", "ask")]
)
def test_a_rule_that_names_a_file_in_full_lets_it_be_written_elsewhere(
    command: str, verdict: str
) -> None:
    assert decide_shell(command, POLICIES["NAMED"]).verdict == verdict


def test_reading_a_whole_folder_by_a_rule_needs_the_fence() -> None:
    policy = change(confined=True, allow=rules("read(/usr/share/)"))
    for folder in ("/usr/share", "/usr/share/"):
        decision = decide_shell(f"cp {folder} b", policy)
        assert decision.reason.endswith("secrets, which only the fence keeps from a command.")
        assert decision.verdict == "ask"
    assert decide_shell("cp /usr/share/nothing-there b", policy).verdict == "allow"


@pytest.mark.parametrize(
    "command", ["cat pipe", "head -1 < pipe", "wc -l p*", "cat link", "cat a pipe"]
)
def test_a_fifo_is_not_read_without_a_question(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("pipe")
    policy = msgspec.structs.replace(POLICY, cwd=str(tmp_path), roots=(str(tmp_path),))
    decision = decide_shell(command, policy)
    assert decision.verdict == "ask"
    assert "is a FIFO" in decision.reason
    assert decide_shell("cat a /dev/null; cat < a; cat <(ls)", policy).verdict == "allow"
