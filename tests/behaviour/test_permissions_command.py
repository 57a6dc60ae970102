"""`trimtab permissions` and the permission flags, as a person uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, Outcome, bash, serving


def as_lines(*requests: Any) -> bytes:
    return b"".join(json.dumps(request).encode() + b"\n" for request in requests)


async def explain(cli: Cli, *requests: Any) -> list[dict[str, Any]]:
    outcome: Outcome = await cli.run("permissions", "explain", "--jsonl", stdin=as_lines(*requests))
    assert outcome.code == 0, outcome.notes
    return outcome.lines


async def test_a_command_is_explained_in_words(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    outcome = await cli.run(
        "permissions", "explain", "git status && make", "--allow-tool", "shell(git:*)"
    )
    assert outcome.text == (
        "git status && make\n  git status: only reads\n  make: may change things\n"
        "ask: No rule allows make.\n"
    )
    outcome = await cli.run("permissions", "explain", "make", "--allow-all", "--json")
    assert json.loads(outcome.text)["decisions"] == {"given": "allow"}
    hidden = await cli.run("permissions", "explain", "ls \u202egpj")
    assert "\u202e" not in hidden.text
    assert "⟨U+202E⟩" in hidden.text


async def test_requests_about_commands_are_answered_line_by_line(tmp_path: Path) -> None:
    sets = {
        "none": {},
        "ruled": {"allow": ["shell(npm:*)", "write"]},
        "denied": {"deny": ["shell(npm test)"], "allow_all": True},
        "all": {"allow_all": True},
    }
    answers = await explain(
        Cli(tmp_path),
        {
            "command": "npm test > log",
            "shell": "bash",
            "cwd": "/w",
            "home": "/h",
            "rule_sets": sets,
        },
        {"command": "ls", "rule_sets": {"bad": {"allow": ["shell("]}}},
        {"command": "Get-Item x", "shell": "powershell", "rule_sets": {"none": {}}},
    )
    first, bad, other = answers
    assert first["commands"] == [{"identifier": "npm test", "readOnly": False}]
    assert first["hasWriteFileRedirection"] is True
    assert first["possiblePaths"] == ["log"]
    assert first["decisions"] == {"none": "ask", "ruled": "allow", "denied": "deny", "all": "allow"}
    assert set(first["reasons"]) == set(sets)
    assert "'shell('" in bad["error"]
    assert other["decisions"] == {"none": "ask"}


async def test_requests_about_paths_are_answered_line_by_line(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cwd, outside = str(cli.cwd), tmp_path / "outside"
    outside.mkdir()
    (cli.cwd / "link").symlink_to(outside)
    strict = ["--disallow-temp-dir"]
    base = {"tool": "edit", "cwd": cwd, "grants": [], "flags": strict, "rules": []}
    answers = await explain(
        cli,
        base | {"op": "read", "path": "a"},
        base | {"op": "read", "path": "link/a"},
        base | {"op": "read", "path": "link/a", "grants": [str(outside)]},
        base | {"op": "write", "path": "a"},
        base | {"op": "create", "path": "a", "rules": ["write"]},
        base | {"op": "write", "path": ".git/config", "rules": ["write"]},
        base | {"op": "write", "path": "link/a", "flags": [*strict, "--allow-all-tools"]},
        base | {"op": "delete", "path": "link/a", "flags": [*strict, "--allow-all"]},
        base | {"op": "write", "path": "a", "flags": [*strict, "--allow-all", "--deny-tool=write"]},
        base | {"op": "write", "path": "a", "flags": [*strict, "--allow-all", "--deny-tool=edit"]},
        base | {"op": "read", "path": "/proc/self/mem"},
        base | {"op": "write", "path": str(cli.home / "settings.json"), "flags": ["--allow-all"]},
        {"op": "fly", "path": "a"},
    )
    assert [one.get("decision", "error") for one in answers] == [
        *("allow", "ask", "allow", "ask", "allow", "ask", "ask", "ask", "deny", "deny", "deny"),
        *("deny", "error"),
    ]
    assert answers[1]["resolved"] == str(outside / "a")
    assert answers[1]["inside"] is False
    assert answers[2]["inside"] is True


@pytest.mark.parametrize("context", ["approval", "transcript"])
async def test_text_is_neutralised_line_by_line(tmp_path: Path, context: str) -> None:
    hostile = "a\x1b[2Jb\x9b1mc\rd\u202ee\u200bf\x07g\ud800h"
    outcome = await Cli(tmp_path).run(
        "permissions",
        "neutralise",
        "--context",
        context,
        "--jsonl",
        stdin=as_lines({"text": hostile}),
    )
    shown = outcome.lines[0]["text"]
    assert not set(shown) & set("\x1b\x9b\r\u202e\u200b\x07\ud800")
    if context == "approval":
        assert shown == "a⟨U+001B⟩[2Jb⟨U+009B⟩1mc⟨U+000D⟩d⟨U+202E⟩e⟨U+200B⟩f⟨U+0007⟩g⟨U+D800⟩h"


@pytest.mark.proves("PERM-04")
async def test_flags_allow_and_deny_by_rule(tmp_path: Path) -> None:
    script = [{"tools": [bash("touch a")]}, {"tools": [bash("mkdir b")]}, "done"]
    async with serving(script) as server:
        cli = Cli(tmp_path).use(server)
        flags = ("--allow-tool", "shell(touch), shell(mkdir)", "--deny-tool", "shell(mkdir)")
        outcome = await cli.run("-p", "go", "--output-format", "json", *flags)
    assert outcome.result["permissionDenials"] == 1
    assert [path.name for path in cli.cwd.iterdir()] == ["a"]


async def test_a_wrong_rule_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    outcome = await Cli(tmp_path).run("-p", "x", "--allow-tool", "shell(git *)")
    assert outcome.code == 2
    assert "'shell(git *)'" in outcome.notes


@pytest.mark.proves("PERM-06")
async def test_allow_all_is_all_three_by_flag_and_by_variable(tmp_path: Path) -> None:
    script = [{"tools": [bash("touch a; cat /etc/hostname")]}, "done"]
    ways = [
        ("--allow-all",),
        ("--yolo",),
        ("--allow-all-tools", "--allow-all-paths", "--allow-all-urls"),
        (),
    ]
    for number, flags in enumerate(ways):
        async with serving(script) as server:
            cli = Cli(tmp_path / str(number)).use(server)
            if not flags:
                cli.env["COPILOT_ALLOW_ALL"] = "true"
            outcome = await cli.run("-p", "go", "--output-format", "json", *flags)
        assert outcome.result["permissionDenials"] == 0
        assert (cli.cwd / "a").exists()


@pytest.mark.proves("PERM-06")
@pytest.mark.parametrize(
    ("missing", "allowed"),
    [
        (None, [True, True, True]),
        ("--allow-all-tools", [False, True, True]),
        ("--allow-all-paths", [True, False, True]),
        ("--allow-all-urls", [True, True, False]),
    ],
)
async def test_each_of_the_three_flags_allows_its_own_part(
    cli: Cli, missing: str | None, allowed: list[bool]
) -> None:
    calls = [
        bash("touch a"),
        {"name": "view", "arguments": {"path": "/etc/hostname"}},
        {"name": "web_fetch", "arguments": {"url": "http://127.0.0.1:1/x"}},
    ]
    every = ("--allow-all-tools", "--allow-all-paths", "--allow-all-urls")
    async with serving([*({"tools": [call]} for call in calls), "done"]) as server:
        flags = [flag for flag in every if flag != missing]
        outcome = await cli.use(server).run("-p", "go", "--output-format", "json", *flags)
    ends = outcome.of("tool.execution_complete")
    codes = [end.get("error", {}).get("code") for end in ends]
    assert [code != "denied" for code in codes] == allowed


async def test_rules_are_suggested_from_past_answers(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    folder = cli.home / "session-state" / "s"
    folder.mkdir(parents=True)
    lines = []
    for number, (name, kind) in enumerate(
        [
            ("make", "approved"),
            ("make", "approved"),
            ("rm", "approved"),
            ("rm", "denied-interactively-by-user"),
            ("rm", "approved"),
        ]
    ):
        request = {
            "kind": "shell",
            "canOfferSessionApproval": True,
            "commands": [{"identifier": name, "readOnly": False}],
        }
        lines.append(
            {
                "type": "permission.requested",
                "data": {"requestId": str(number), "permissionRequest": request},
            }
        )
        lines.append(
            {
                "type": "permission.completed",
                "data": {"requestId": str(number), "result": {"kind": kind}},
            }
        )
    (folder / "events.jsonl").write_bytes(as_lines(*lines) + b'{"permission.requested" broken\n')
    outcome = await cli.run("permissions", "suggest")
    assert outcome.text == "--allow-tool 'shell(make)'  # approved 2 times\n"
    outcome = await cli.run("permissions", "suggest", "--json", "--least", "9")
    assert json.loads(outcome.text) == []


@pytest.mark.parametrize("action", [("explain",), ("neutralise", "--context", "approval")])
async def test_every_line_gets_one_answer_whatever_it_holds(
    tmp_path: Path, action: tuple[str, ...]
) -> None:
    lines = [
        *(b"", b" ", b"no json", b"[]", b"null", b"3", b"NaN", b"\xff\xfe", b"[" * 100_000, b"{}"),
        *(
            b'{"command": 3}',
            b'{"command": "ls", "rule_sets": 3}',
            b'{"text": null}',
            b'{"text": 3}',
        ),
        *(b'{"command": "\\ud800"}', b'{"command": "a\\u0000b"}', b'{"text": "\\ud800"}'),
        *(b'{"tool": "view"}', b'{"op": "zap", "path": "x"}', b'{"path": "a\\u0000"}'),
        *(b'{"op": "write", "path": "/proc/1/root/x"}', b'{"path": "x", "flags": ["--none"]}'),
        b'{"command": "' + b"echo a; " * 125_000 + b'"}',
        b'{"text": "' + b"x" * 1_000_000 + b'"}',
        b'{"command": "ls", "text": "last"}',
    ]
    given = b"\n".join(lines) + b"\n"
    outcome = await Cli(tmp_path).run("permissions", *action, "--jsonl", stdin=given)
    assert outcome.code == 0, outcome.notes
    assert len(outcome.lines) == len(lines)
    assert "error" not in outcome.lines[-1]


async def test_groups_of_commands_are_listed_and_a_wrong_name_says_which_there_are(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    outcome = await cli.run("permissions", "groups")
    assert "shell(@git)          everyday work with git (" in outcome.text
    outcome = await cli.run("permissions", "groups", "@processes")
    assert outcome.text == "kill\nkillall\npkill\n"
    outcome = await cli.run("permissions", "groups", "git", "--json")
    assert "git commit" in json.loads(outcome.text)["commands"]
    outcome = await cli.run("permissions", "groups", "frob")
    assert outcome.code == 2
    assert outcome.notes.startswith("There is no group of commands @frob; the groups are @git, ")
