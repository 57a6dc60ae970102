"""What each kind of rule covers: commands, paths, addresses, tools and servers."""

from pathlib import Path

import msgspec
import pytest

from permissionkit import POLICY
from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.decide_shell import decide_shell
from trimtab.permissions.rules import (
    covers,
    find_spots,
    matches_address,
    matches_command,
    matches_path,
    matches_tool,
    name_rule,
    parse_rule,
    parse_rules,
    to_globs,
)
from trimtab.permissions.shell.verdict.analysis import Found


def command(text: str, identifier: str = "", base: str = "") -> Found:
    words = tuple(text.split())
    name = identifier or words[0]
    return Found(
        identifier=name, read_only=False, base=base or name, words=words, leading=words[:2]
    )


@pytest.mark.parametrize(
    ("rule", "found", "allows", "denies"),
    [
        ("shell", command("make"), True, True),
        ("bash", command("make"), True, True),
        ("write", command("write"), False, False),
        ("shell(make)", command("make all"), True, True),
        ("shell(make)", command("makes all"), False, False),
        ("shell(make)", command("./make", base="make"), False, True),
        ("shell(./make)", command("./make", base="make"), True, True),
        ("shell(git:*)", command("git push", "git push"), True, True),
        ("shell(git :*)", command("git push", "git push"), True, True),
        ("shell(git:*)", command("git"), True, True),
        ("shell(git)", command("git push", "git push"), False, False),
        ("shell(git:*)", command("gitk"), False, False),
        ("shell(git push)", command("git push", "git push"), True, True),
        ("shell(git push)", command("git pull", "git pull"), False, False),
        ("shell(cargo test)", command("cargo test -q"), True, True),
        ("shell(cargo test)", command("cargo tests -q"), False, False),
        ("shell(cargo test)", command("cargo zest"), False, False),
        ("shell(cargo test)", command("cargo"), False, False),
        ("shell(a b c)", command("a b c"), False, True),
        ("shell(cargo test)", command("/bin/cargo test", base="cargo"), False, True),
        ("shell(cargo test:*)", command("cargo test"), True, True),
    ],
)
def test_a_rule_for_commands_covers_names_and_first_words(
    rule: str, found: Found, allows: bool, denies: bool
) -> None:
    assert matches_command(parse_rule(rule), found) is allows
    assert matches_command(parse_rule(rule), found, denies=True) is denies


def test_a_command_without_words_is_known_by_its_name_only() -> None:
    found = Found(identifier="a b", read_only=False, base="a b")
    assert matches_command(parse_rule("shell(a b)"), found)
    assert not matches_command(parse_rule("shell(b c)"), found)
    assert not matches_command(parse_rule("shell(b c)"), found, denies=True)


@pytest.mark.parametrize(
    ("rule", "kind", "path", "allows", "denies"),
    [
        ("read", "read", "/w/a", True, True),
        ("read", "write", "/w/a", False, False),
        ("view", "read", "/w/a", True, False),
        ("grep(a)", "read", "/w/a", True, True),
        ("edit", "write", "/w/a", True, False),
        ("read(a)", "read", "/w/a", True, True),
        ("read(a)", "read", "/x/a", True, True),
        ("read(a)", "read", "/w/b", False, False),
        ("read(a)", "read", "/w/ba", False, False),
        ("read(a)", "read", "/w/a/b", False, True),
        ("read(a/b)", "read", "/w/a/b", True, True),
        ("read(a/b)", "read", "/w/a/b/c/d", False, True),
        ("read(a/b)", "read", "/w/a/c", False, False),
        ("read(a/b)", "read", "/w/b/c", False, False),
        ("read(a/b)", "read", "/w/b", False, False),
        ("read(./a)", "read", "/w/a", True, True),
        ("read(/x/a)", "read", "/x/a", True, True),
        ("read(/x/a)", "read", "/x/a/b", False, True),
        ("read(/x/a)", "read", "/x/ab", False, False),
        ("read(/x/a)", "read", "/x/Z", False, False),
        ("read(/x/a)", "read", "/y/a", False, False),
        ("read(/x/a/)", "read", "/x/a/b", True, True),
        ("read(/x/a/)", "read", "/x/a/.env", False, True),
        ("read(/x/a/)", "read", "/x/b", False, False),
        ("write(/x/a/)", "write", "/x/a/b", True, True),
        ("write(/x/a/)", "write", "/x/a", True, True),
        ("read(../a)", "read", "/a", True, True),
        ("read(../a)", "read", "/w/a", False, False),
        ("read(../a)", "read", "/b", False, False),
    ],
)
def test_a_rule_for_paths_covers_names_and_places(
    rule: str, kind: str, path: str, allows: bool, denies: bool
) -> None:
    given = parse_rule(rule)
    assert matches_path(given, kind, path, "/w") is allows
    assert matches_path(given, kind, path, "/w", denies=True) is denies


def test_a_path_counts_where_it_leads_and_to_deny_also_where_it_seems(tmp_path: Path) -> None:
    place = tmp_path.resolve()
    (place / "real").write_text("x")
    (place / "link").symlink_to(place / "real")
    link = str(place / "link")
    assert find_spots(link, "/w", denies=False) == {str(place / "real")}
    assert find_spots(link, "/w", denies=True) == {str(place / "real"), link}
    named = parse_rule("read(link)")
    assert not matches_path(named, "read", link, "/w")
    assert matches_path(named, "read", link, "/w", denies=True)
    assert find_spots("a/../b", str(place), denies=True) >= {str(place / "b")}


def test_a_content_exclusion_covers_its_patterns_below_its_root() -> None:
    rule = Rule("read", "*.key", "acme", root="/w/sub")
    assert covers(rule, ["/w/sub/x/a.key"], "/w", True)
    assert covers(rule, ["/w/a", "/w/sub/a.key"], "/w", True)
    assert not covers(rule, ["/w/a.key"], "/w", True)
    assert name_rule(rule) == "The content exclusion '*.key' of acme"
    assert name_rule(Rule("read", "a")) == "The rule read(a)"


@pytest.mark.parametrize(
    ("rule", "globs"),
    [
        ("read(.env)", ("**/.env",)),
        ("read(a/b)", ("**/a/b",)),
        ("read(..a)", ("**/..a",)),
        ("read(+a)", ("**/+a",)),
        ("read(/x/a)", ("**/x/a",)),
        ("read(/w/a)", ("**/w/a", "/a")),
        ("read(/w/+a)", ("**/w/+a", "/+a")),
        ("read(../a)", ("**/a",)),
        ("read", ()),
        ("write(a)", ()),
        ("view(a)", ("**/a",)),
        ("shell(a)", ()),
    ],
)
def test_rules_that_deny_reading_become_patterns_for_searches(
    rule: str, globs: tuple[str, ...]
) -> None:
    assert to_globs(parse_rules([rule]), "/w") == globs


def test_every_rule_becomes_patterns_whatever_stands_before_it() -> None:
    excluded = Rule("read", "*.key", "acme", root="/w")
    given = (*parse_rules(["write(x)", "read"]), excluded, *parse_rules(["read(a)", "read(/x/b)"]))
    globs = to_globs(given, "/w")
    assert globs[-2:] == ("**/a", "**/x/b")
    assert any("key" in glob for glob in globs[:-2])


@pytest.mark.parametrize(
    ("rule", "allows", "denies"),
    [
        ("url", True, True),
        ("url(a.test)", True, True),
        ("url(http://a.test)", False, True),
        ("url(b.test)", False, False),
        ("web_fetch", True, False),
        ("read", False, False),
    ],
)
def test_a_rule_for_addresses(rule: str, allows: bool, denies: bool) -> None:
    given = parse_rule(rule)
    assert matches_address(given, "https://a.test/x") is allows
    assert matches_address(given, "https://a.test/x", denies=True) is denies


def server(name: str = "db", tool: str = "q", **detail: object) -> Access:
    fields = {"serverName": name, "toolName": tool, **detail}
    return Access(kind="mcp", target=f"{name}-{tool}", detail=fields)


@pytest.mark.parametrize(
    ("rule", "access", "allows", "denies"),
    [
        (Rule("memory", None), Access(kind="memory"), True, True),
        (Rule("write", None), Access(kind="memory"), False, False),
        (Rule("custom-tool", "x"), Access(kind="custom-tool", target="x"), True, True),
        (Rule("custom-tool", "y"), Access(kind="custom-tool", target="x"), False, False),
        (Rule("custom-tool", None), Access(kind="custom-tool", target="x"), True, True),
        (Rule("x", None), Access(kind="custom-tool", target="x"), True, True),
        (Rule("x", "y"), Access(kind="custom-tool", target="x"), False, False),
        (Rule("aaa", None), Access(kind="custom-tool", target="x"), False, False),
        (Rule("db", None), server(), True, True),
        (Rule("db", "q"), server(), True, True),
        (Rule("db", "r"), server(), False, False),
        (Rule("aa", None), server(), False, False),
        (Rule("db-q", None), server(), True, True),
        (Rule("db-q", "x"), server(), False, False),
        (Rule("mcp__db", None), server(), True, True),
        (Rule("mcp__db__q", None), server(), True, True),
        (Rule("write", None), server("write"), False, True),
        (Rule("write", "q"), server("write"), False, True),
        (Rule("memory", None), server("memory"), False, True),
        (Rule("memory", "q"), server("memory"), True, True),
        (Rule("db", "q", digest="1"), server(toolDigest="1"), True, True),
        (Rule("db", "q", digest="1"), server(toolDigest="2"), False, False),
        (Rule("db", "q", digest="1"), server(), False, False),
        (Rule("db", "q"), server(toolDigest="2"), True, True),
    ],
)
def test_a_rule_for_tools_and_servers(
    rule: Rule, access: Access, allows: bool, denies: bool
) -> None:
    assert matches_tool(rule, access) is allows
    assert matches_tool(rule, access, denies=True) is denies


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("shel(ls)", "did you mean shell"),
        ("Write", "did you mean write"),
        ("memry", "did you mean memory"),
        ("shell(git *)", "write shell(git:*)"),
        ("shell(*x)", "write shell(NAME:*)"),
        ("shell(git: *)", "write shell(git:*)"),
        ("shell(git:)", "write shell(git:*)"),
        ("shell(git push:)", "write shell(git push:*)"),
        ("shell(git:push)", "names no single command"),
        ("shell(git, rm)", "a rule for each command"),
        ("shell(git|rm)", "a rule for each command"),
        ("bash(git;rm)", "write bash(NAME)"),
        ("shell(a && b)", "names no single command"),
        ("shell(git\npush)", "names no single command"),
        ("shell('rm')", "without quotes"),
        ('shell("git push")', "without quotes"),
        ("shell($TOOL)", "names no single command"),
        ("read('.env')", "a path takes no quotes"),
        ('view(".env")', "a path takes no quotes"),
        ("read(.env, .secret)", "a rule names one file"),
        ("db(a, b)", "name one tool"),
        ("db('a')", "name one tool"),
        ("shell()", "write shell alone"),
        ("memory(x)", "memory takes no argument"),
        ("read(a*)", "a path takes no pattern"),
        ("write(a?)", "a path takes no pattern"),
        ("url(a b)", "that is not an address"),
        ("(x)", "cannot be read"),
        ("shell(x", "cannot be read"),
    ],
)
def test_a_rule_that_is_wrong_is_named_with_what_to_write(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert part in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("ur", "ur", None),
        ("db", "db", None),
        ("url", "url", None),
        (" shell( git push ) ", "shell", "git push"),
        ("shell(*)", "shell", None),
        ("shell(:*)", "shell", None),
        ("db(*)", "db", None),
        ("db(a)", "db", "a"),
        ("@scope/db(x)", "@scope/db", "x"),
    ],
)
def test_a_rule_is_read_as_it_is_written(text: str, kind: str, argument: str | None) -> None:
    assert parse_rule(text, "file") == Rule(kind, argument, "file")


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("./run.sh", True),
        ("scripts/a.sh --fast", True),
        ("{cwd}/scripts/a.sh", True),
        ("cd scripts && ./a.sh", True),
        ("./missing", True),
        ("run.sh", False),
        ("/tmp/run.sh", False),
        ("../run.sh", False),
        ("./scripts/../../run.sh", False),
        ("./away", False),
        ("./away/ls", False),
        ("cd /tmp && ./run.sh", False),
        ("cd $x && ./run.sh", False),
        (".git/hooks/pre-commit", False),
        ("./$x", False),
        ("./run.sh && frob", False),
    ],
)
def test_a_rule_for_programs_here_covers_those_below_that_are_named_by_path(
    tmp_path: Path, script: str, allowed: bool
) -> None:
    cwd = tmp_path / "work"
    (cwd / "scripts").mkdir(parents=True)
    (cwd / "away").symlink_to("/usr/bin")
    policy = msgspec.structs.replace(
        POLICY, cwd=str(cwd), roots=(str(cwd), "/tmp"), allow=parse_rules(["shell(./)"])
    )
    command = script.format(cwd=cwd)
    assert (decide_shell(command, policy).verdict == "allow") is allowed
    denied = msgspec.structs.replace(policy, deny=policy.allow, allow=(), allow_all_tools=True)
    if allowed:
        assert decide_shell(command, denied).verdict == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "{tool}/go",
        "../tool/go",
        "cd ../tool; ./go",
        "(cd {tool}; ./go)",
        "../link/go",
        "bash {tool}/go",
        "source ../link/go",
        "cd ../tool && python3 go.py",
    ],
)
@pytest.mark.parametrize("named", ["tool", "link"])
def test_a_rule_that_denies_the_programs_of_a_folder_holds_by_every_way_there(
    tmp_path: Path, named: str, command: str
) -> None:
    place = tmp_path.resolve()
    for name in ("tool", "work"):
        (place / name).mkdir()
    (place / "link").symlink_to("tool")
    denied = parse_rules([f"shell({place / named}/)"])
    work = str(place / "work")
    policy = msgspec.structs.replace(
        POLICY, cwd=work, roots=(work,), allow_all_tools=True, allow_all_paths=True, deny=denied
    )
    assert decide_shell(command.format(tool=place / "tool"), policy).verdict == "deny"
    assert decide_shell("bash go", policy).verdict == "allow"


@pytest.mark.parametrize("argument", ["~/x/", "x/", "../", "/x/../", "//", "/x//"])
def test_the_folder_of_a_rule_for_programs_is_named_in_full(argument: str) -> None:
    with pytest.raises(UsageError, match="a folder is named in full"):
        parse_rule(f"shell({argument})")
