import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permissionkit import POLICY, rules
from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.decide import decide
from trimtab.permissions.paths import is_protected
from trimtab.permissions.rules import parse_rule, parse_rules, to_globs
from trimtab.permissions.urls import matches_url


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("shell", "shell", None),
        ("shell(*)", "shell", None),
        ("bash(*)", "bash", None),
        ("bash(:*)", "bash", None),
        ("bash(git:*)", "bash", "git:*"),
        ("url(*)", "url", "*"),
        ("github(*)", "github", None),
        ("shell(git push)", "shell", "git push"),
        ("shell(git:*)", "shell", "git:*"),
        (" write(src/a b.py) ", "write", "src/a b.py"),
        ("read(/etc/hosts)", "read", "/etc/hosts"),
        ("url(https://*.example.com)", "url", "https://*.example.com"),
        ("memory", "memory", None),
        ("github(create_issue)", "github", "create_issue"),
        ("my_tool", "my_tool", None),
        ("edit(src/)", "write", "src/"),
        ("view(.env)", "read", ".env"),
        ("web_fetch(x.test)", "url", "x.test"),
        ("edit", "edit", None),
        ("mcp__server__tool", "mcp__server__tool", None),
        ("shell(\u65e5\u672c)", "shell", "\u65e5\u672c"),
    ],
)
def test_rules_are_read(text: str, kind: str, argument: str | None) -> None:
    rule = parse_rule(text, "test")
    assert (rule.kind, rule.argument, rule.source) == (kind, argument, "test")


@pytest.mark.parametrize(
    "text",
    [
        *("", "(x)", "shell(", "shell)", "shell()", "shell(git *)", "shell(g*t)", "write(*.py)"),
        *("bash(git *)", "bash(g*t)", "shell(*:*)", "edit(*.py)", "view(a?)", "web_fetch(a b)"),
        *("github(get_*)", "read($HOME/x)", "write(${HOME}/x)", "read(~nobody-here/x)"),
        *("sh\u0435ll(rm)", "shell(r\uff4d)", "shell(g\u0456t push)", "shell(git\u00a0push)"),
        *("mcp__", "mcp_x_y", "mcp__ _x", "all", "Everything"),
        *("memory(x)", "url(a b)", "url(https://)", "shell(x) y", "-x", "read(a?)"),
        *(
            "shell(!rm)",
            "shell(-rm)",
            "shell(~/x)",
            "shell(r\u200bm)",
            "shell(rm\0)",
            "read(a\u202eb)",
        ),
        *("url(x.test:99999)", "url(https//x.test)", "github(a b)", "github(domain:x)"),
    ],
)
def test_a_wrong_rule_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Bash(rm:*)", "did you mean bash?"),
        ("Edit(.env)", "did you mean edit?"),
        ("Grep", "did you mean grep?"),
        ("shell:rm", "did you mean shell(rm)?"),
        ("write:src/a.py", "did you mean write(src/a.py)?"),
        ("PowerShell(rm)", "write shell(rm)"),
        ("run_shell(rm)", "write shell(rm)"),
        ("sh(rm)", "write shell(rm)"),
        ("WebFetch(domain:x.test)", "write url(x.test)"),
        ("read_file(.env)", "write read(.env)"),
        ("MultiEdit(src/a.py)", "write write(src/a.py)"),
    ],
)
def test_a_rule_in_the_words_of_another_program_is_an_error_that_names_ours(
    text: str, meant: str
) -> None:
    """It was taken for the tool of a server, and covered nothing."""
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert meant in caught.value.message


@pytest.mark.parametrize(
    "argument",
    ["/home/zoë/café/x", "/h/Größe/", "./報告v2/run.sh", "/home/отчёт/x", "/cafe\u0301/x"],
)
def test_paths_may_be_in_any_language(argument: str) -> None:
    assert parse_rule(f"shell({argument})").argument == argument


@pytest.mark.parametrize(
    "argument",
    [
        *("g\u0131t push", "r\u1e3f", "/opt/caf\u0435/x", "/opt/\uff52\uff4d", "/opt/a\u200db/x"),
        *("/opt/\u0251b/x", "/opt/rm\u2113"),
    ],
)
def test_letters_that_only_look_like_others_are_no_rule(argument: str) -> None:
    with pytest.raises(UsageError):
        parse_rule(f"shell({argument})")


@pytest.mark.parametrize("text", ["powershell", "fetch(fetch)", "mcp__cmd__run", "a-b(c.d/e_f)"])
def test_names_of_tools_and_servers_stay_rules(text: str) -> None:
    assert str(parse_rule(text)) == text


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("example.com", "https://example.com/x", True),
        ("example.com", "http://example.com/x", False),
        ("http://example.com", "http://example.com", True),
        ("example.com", "https://www.example.com", False),
        ("*.example.com", "https://www.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("*.example.com", "https://evilexample.com", False),
        ("example.com", "https://example.com.evil.test", False),
        ("example.com", "https://example.com@evil.test/", False),
        ("example.com", "https://evil.test/example.com", False),
        ("example.com", "https://evil.test\\@example.com", False),
        ("example.com", "https://example.com:8443/", False),
        ("https://example.com:8443", "https://example.com:8443/", True),
        ("example.com", "HTTPS://EXAMPLE.COM./", True),
        ("example.com/docs", "https://example.com/docs/a", True),
        ("example.com/docs", "https://example.com/docs2", False),
        ("example.com/docs", "https://example.com/docs/../x", False),
        ("example.com/docs/*", "https://example.com/docs?x=1", True),
        ("*", "http://anything.test", True),
        ("https://*", "https://anything.test", True),
        ("https://*", "http://anything.test", False),
    ],
)
def test_address_patterns(pattern: str, url: str, matches: bool) -> None:
    assert matches_url(pattern, url) is matches


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("evil.test", "http://evil.test:99/x"),
        ("*.evil.test", "https://evil.test"),
        ("evil.test", "https://a@evil.test/"),
        ("evil.test", "https://x.test\\@evil.test"),
    ],
)
def test_a_denied_address_is_denied_by_every_protocol_and_port(pattern: str, url: str) -> None:
    policy = msgspec.structs.replace(POLICY, allow_all_urls=True, deny=rules(f"url({pattern})"))
    assert decide(Access(kind="url", target=url), policy).verdict == "deny"


def test_tools_are_allowed_by_server_and_name() -> None:
    call = Access(kind="mcp", target="x", detail={"serverName": "hub", "toolName": "make"})
    custom = Access(kind="custom-tool", target="deploy")
    for access, allow, verdict in [
        (call, (), "ask"),
        (call, ("hub",), "allow"),
        (call, ("hub(make)",), "allow"),
        (call, ("hub(other)",), "ask"),
        (custom, ("deploy",), "allow"),
        (custom, ("deplo",), "ask"),
        (Access(kind="memory", target="x"), ("memory",), "allow"),
    ]:
        policy = msgspec.structs.replace(POLICY, allow=rules(*allow))
        assert decide(access, policy).verdict == verdict
        denied = msgspec.structs.replace(policy, deny=rules(*allow), allow_all_tools=True)
        assert decide(access, denied).verdict == (
            "deny" if allow and verdict == "allow" else "allow"
        )


@pytest.fixture
def place(tmp_path: Path) -> Policy:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "src", inside / ".git", outside):
        folder.mkdir(parents=True)
    (outside / "secret").write_text("x")
    (inside / "a.py").write_text("x")
    (inside / "link").symlink_to(outside)
    (inside / "dangling").symlink_to(outside / "new")
    (inside / "friend").symlink_to(inside / "a.py")
    os.mkfifo(inside / "pipe")
    return Policy(cwd=str(inside), roots=(str(inside),))


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("a.py", "allow"),
        ("src/new/deep.py", "allow"),
        ("friend", "allow"),
        (".", "allow"),
        ("../outside/secret", "ask"),
        ("link/secret", "ask"),
        ("link/new/file", "ask"),
        ("dangling", "ask"),
        ("src/../../outside/secret", "ask"),
        ("../inside2", "ask"),
        ("pipe", "deny"),
        ("/proc/self/environ", "deny"),
        ("/proc/self/root/etc/hosts", "deny"),
        ("/dev/sda", "deny"),
        ("/dev/null", "deny"),
        ("/etc/hosts", "ask"),
    ],
)
def test_reading_is_decided_by_where_a_path_leads(place: Policy, path: str, verdict: str) -> None:
    access = Access(kind="read", target=os.path.join(place.cwd, path), mutates=False)
    assert decide(access, place).verdict == verdict
    everywhere = msgspec.structs.replace(place, allow_all_paths=True)
    expected = "allow" if verdict == "ask" else verdict
    assert decide(access, everywhere).verdict == expected


@pytest.mark.parametrize(
    ("path", "allow", "verdict"),
    [
        ("a.py", (), "ask"),
        ("a.py", ("write",), "allow"),
        ("a.py", ("write(a.py)",), "allow"),
        ("src/b.py", ("write(src/b.py)",), "allow"),
        ("src/b.py", ("write(b.py)",), "allow"),
        ("src/b.py", ("write(rc/b.py)",), "ask"),
        ("friend", ("write(friend)",), "ask"),
        ("friend", ("write(a.py)",), "allow"),
        ("link/secret", ("write",), "ask"),
        ("link/secret", ("write(link/secret)",), "ask"),
        ("dangling", ("write",), "ask"),
        ("/etc/hosts", ("write",), "ask"),
        ("/etc/hosts", ("write(hosts)",), "ask"),
        ("/etc/hosts", ("write(/etc/hosts)",), "allow"),
        (".git/config", ("write",), "ask"),
        (".git/hooks/pre-commit", ("write(pre-commit)",), "ask"),
        (".gitmodules", ("write",), "ask"),
        (".vscode/tasks.json", ("write",), "ask"),
        (".VSCode/tasks.json", ("write",), "ask"),
        (".idea/x", ("write",), "ask"),
        (".mcp.json", ("write",), "ask"),
        (".bashrc", ("write",), "ask"),
        (".github/hooks/x.json", ("write",), "ask"),
        (".github/workflows/ci.yml", ("write",), "allow"),
        (".claude/settings.json", ("write",), "ask"),
        ("sub/.agents/x", ("write",), "ask"),
        ("src/../.git/config", ("write",), "ask"),
        ("pipe", ("write",), "deny"),
        ("/dev/sda", ("write",), "deny"),
    ],
)
def test_writing_is_decided_by_place_and_rule(
    place: Policy, path: str, allow: tuple[str, ...], verdict: str
) -> None:
    access = Access(kind="write", target=os.path.join(place.cwd, path))
    decision = decide(access, msgspec.structs.replace(place, allow=rules(*allow)))
    assert decision.verdict == verdict, decision.reason


def test_protected_paths_are_asked_about_unless_all_paths_are_allowed(place: Policy) -> None:
    access = Access(kind="write", target=os.path.join(place.cwd, ".git/config"))
    tools = msgspec.structs.replace(place, allow_all_tools=True)
    assert decide(access, tools).verdict == "ask"
    assert decide(access, msgspec.structs.replace(tools, allow_all_paths=True)).verdict == "allow"


def test_the_agents_own_folder_is_never_written(place: Policy) -> None:
    home = os.path.join(place.cwd, ".home")
    session = os.path.join(home, "session-state", "1")
    policy = msgspec.structs.replace(
        place, homes=(home,), session_folder=session, allow_all_tools=True, allow_all_paths=True
    )
    for name, verdict in [
        (os.path.join(home, "settings.json"), "deny"),
        (os.path.join(session, "events.jsonl"), "deny"),
        (os.path.join(session, "plan.md"), "allow"),
        (os.path.join(session, "files", "x"), "allow"),
        (os.path.join(session, "files", "..", "events.jsonl"), "deny"),
    ]:
        assert decide(Access(kind="write", target=name), policy).verdict == verdict


def test_deleting_outside_is_asked_about_even_if_all_is_allowed(place: Policy) -> None:
    policy = msgspec.structs.replace(place, allow_all_tools=True, allow_all_paths=True)
    outside = Access(kind="write", target="/etc/hosts", detail={"deletes": True})
    assert decide(outside, policy).verdict == "ask"
    freely = msgspec.structs.replace(policy, allow_destructive=True)
    assert decide(outside, freely).verdict == "allow"


def test_deny_rules_cover_files_in_a_denied_folder_also_through_links(place: Policy) -> None:
    policy = msgspec.structs.replace(
        place, allow_all_tools=True, allow_all_paths=True, deny=rules("write(src)", "read(secret)")
    )
    for kind, path in [("write", "src/x"), ("write", "src"), ("read", "link/secret")]:
        access = Access(kind=kind, target=os.path.join(place.cwd, path))
        assert decide(access, policy).verdict == "deny"


NAMED = st.sampled_from(
    [".git/config", ".git/hooks/pre-commit", ".gitmodules", ".mcp.json", ".vscode/tasks.json", ".idea/x.xml", ".bashrc", ".zshenv", ".claude/settings.json", ".agents/x", ".github/hooks/h.json", ".husky/pre-push", ".github/copilot/settings.json", ".github/tools/t.py", ".envrc", ".devcontainer/x"]
)  # fmt: skip
SPELLED: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.title,
    lambda name: name.replace("/", "./") + ".",
    lambda name: name.replace("/", " /") + " .",
    lambda name: f"./x/.././{name}",
    lambda name: name.replace(".", ".\u200c", 1),
    lambda name: f"//{name}",
]


@given(
    name=NAMED,
    above=st.lists(st.sampled_from(["a", "src", "..x", "node_modules", "é"]), max_size=5),
    spell=st.sampled_from(SPELLED),
)
def test_protected_names_are_found_at_every_depth_however_they_are_spelled(
    name: str, above: list[str], spell: Callable[[str], str]
) -> None:
    assert is_protected("/".join(["/work", *above, spell(name)]))


@pytest.mark.parametrize(
    "path",
    ["notes", "linked/pre-commit", "far", "deep/in/.git/hooks/x", "hard", "sub/../notes"],
)
def test_protected_names_are_found_behind_links(place: Policy, path: str) -> None:
    cwd = Path(place.cwd)
    (cwd / ".git" / "hooks").mkdir(parents=True, exist_ok=True)
    (cwd / ".git" / "config").write_text("[core]\n")
    (cwd / "sub").mkdir()
    (cwd / "notes").symlink_to(".git/config")
    (cwd / "linked").symlink_to(".git/hooks")
    (cwd / "far").symlink_to("sub/../.github/hooks/not-there-yet.json")
    os.link(cwd / ".git" / "config", cwd / "hard")
    allowed = msgspec.structs.replace(place, allow=rules("write", "shell(tee)"))
    tools = msgspec.structs.replace(place, allow_all_tools=True)
    target = str(cwd / path)
    for policy in (allowed, tools):
        written = decide(Access(kind="write", target=target), policy)
        assert (written.verdict, "protected" in written.reason) == ("ask", True)
        for command in (
            f"echo x > {path}",
            f"echo x | tee {path}",
            f"cd sub && echo x >> ../{path}",
        ):
            assert decide(Access(kind="shell", target=command), policy).verdict == "ask"


@pytest.mark.parametrize("path", ["/proc/self/cwd/.git/config", "/proc/1/root/x"])
def test_the_kernels_names_of_places_lead_nowhere(place: Policy, path: str) -> None:
    policy = msgspec.structs.replace(place, allow=rules("write"), allow_all_tools=True)
    assert decide(Access(kind="write", target=path), policy).verdict == "deny"
    assert decide(Access(kind="shell", target=f"echo x > {path}"), policy).verdict == "deny"


@pytest.mark.parametrize(
    "path", ["git/config", "a.git/x", ".github/workflows/ci.yml", ".gitignore"]
)
def test_what_only_looks_like_a_protected_name_is_none(place: Policy, path: str) -> None:
    assert not is_protected(os.path.join(place.cwd, path))


@pytest.mark.parametrize(
    ("rule", "globs"),
    [
        ("read(.env)", ("**/.env",)),
        ("read(a/b.txt)", ("**/a/b.txt",)),
        ("read(/srv/project/a)", ("**/srv/project/a", "/a")),
        ("read(/etc/x)", ("**/etc/x",)),
        ("read(../x)", ("**/srv/x",)),
        ("read(.)", ("**/srv/project", "**")),
        ("read", ()),
        ("write(.env)", ()),
        ("shell(cat)", ()),
    ],
)
def test_a_search_leaves_out_what_rules_keep_from_being_read(
    rule: str, globs: tuple[str, ...]
) -> None:
    assert to_globs(parse_rules([rule]), "/srv/project") == globs


def test_a_search_leaves_out_excluded_content_below_its_root() -> None:
    rule = Rule("read", "/keys", "file", "/srv")
    assert to_globs([rule], "/srv") == ("**/srv/keys", "/keys")


@pytest.mark.parametrize(
    ("rule", "path", "verdict"),
    [
        ("read(../a)", "../a", "deny"),
        ("read(../a)", "../a/b", "deny"),
        ("read(../a)", "../a/b/c", "deny"),
        ("read(../a/)", "../a/b", "deny"),
        ("read(../a)", "../ab", "ask"),
        ("read(../a)", "src/../../a/b", "deny"),
        ("read(..)", "../a/b", "deny"),
        ("read(.)", "src/x", "deny"),
        ("read(./)", "x", "deny"),
        ("read(src/..)", "x", "deny"),
        ("read(/)", "src/x", "deny"),
    ],
)
def test_a_rule_that_denies_a_folder_denies_what_is_below_it(
    place: Policy, rule: str, path: str, verdict: str
) -> None:
    policy = msgspec.structs.replace(place, deny=rules(rule), allow_all_tools=True)
    target = os.path.join(place.cwd, path)
    assert decide(Access(kind="read", target=target), policy).verdict == verdict
    denied = msgspec.structs.replace(policy, deny=rules(rule.replace("read", "write")))
    assert decide(Access(kind="write", target=target), denied).verdict == verdict


def test_a_rule_that_allows_a_path_above_covers_nothing_below_it(place: Policy) -> None:
    policy = msgspec.structs.replace(place, allow=rules("read(../a)"))
    target = os.path.join(place.cwd, "../a")
    assert decide(Access(kind="read", target=target), policy).verdict == "allow"
    assert decide(Access(kind="read", target=f"{target}/b"), policy).verdict == "ask"


def test_all_tools_of_a_server_are_meant_by_a_star(place: Policy) -> None:
    detail = {"serverName": "github", "toolName": "push"}
    access = Access(kind="mcp", target="github-push", detail=detail)
    for field, verdict in (("allow", "allow"), ("deny", "deny")):
        policy = msgspec.structs.replace(place, **{field: rules("github(*)")})
        assert decide(access, policy).verdict == verdict
