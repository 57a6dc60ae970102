"""`trimtab permissions explain` says what a run would do, with the rules and files of a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clikit import Cli, bash, serving
from permissionkit import DATA, read_cases, read_scripts, split_sessions
from trimtab import Runtime
from trimtab.cli.inputs import build_options
from trimtab.cli.parse import parse
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.permissions.processor import UNAVAILABLE, Permissions
from trimtab.testing import Script, ScriptedProvider
from trimtab.tools.bash.tool import TOOL as BASH


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def corpus() -> list[str]:
    """Every command the tests of permissions have."""
    commands: list[str] = []
    for name in ("addresses", "forbidden", "hostile", "uncertain"):
        commands += read_cases(name)
    for name in ("everyday", "harmless", "ruled"):
        commands += read_scripts(name)
    for name in ("hazards", "hidden"):
        commands += [line.partition("\t")[2] for line in read_cases(name)]
    for file in sorted((DATA / "sessions").iterdir()):
        commands += [command for session in split_sessions(file) for command in session]
    return list(dict.fromkeys(commands))


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has set up. `rules` are the flags of a run as a set of rules."""

    rules: dict[str, Any] = {}
    flags: tuple[str, ...] = ()
    write: Callable[[Cli], None] = lambda _: None


def settings(where: str = "user", **content: Any) -> Callable[[Cli], None]:
    def write(cli: Cli) -> None:
        folder = cli.home if where == "user" else cli.cwd / ".github/copilot"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(content))

    return write


def trusted(cli: Cli) -> None:
    settings("repository", permissions=RULES)(cli)
    (cli.home / "config.json").write_text(json.dumps({"trusted_folders": [str(cli.cwd)]}))


def approved(cli: Cli) -> None:
    approvals = [{"kind": "commands", "commandIdentifiers": ["git status", "make", "npm test"]}]
    place = {"tool_approvals": approvals}
    content = {"locations": {str(cli.cwd): place}, "always": []}
    (cli.home / "permissions-config.json").write_text(json.dumps(content))


RULES = {
    "allow": ["shell(git:*)", "shell(npm:*)", "shell(make)", "write", "url(example.com)"],
    "ask": ["shell(git push)", "shell(docker)"],
    "deny": ["shell(curl)", "shell(rm)", "read(.env)", "url(evil.example)"],
}
SETUPS = {
    "nothing": Setup(),
    "rules of the person": Setup(write=settings(permissions=RULES)),
    "everything allowed but some": Setup(
        flags=("--allow-all", "--deny-tool=shell(git push)"),
        rules={"allow_all": True, "deny": ["shell(git push)"]},
        write=settings(permissions={"deny": ["shell(curl)", "read(.env)"]}),
    ),
    "rules of a trusted repository": Setup(write=trusted),
    "rules of a repository nobody trusts": Setup(write=settings("repository", permissions=RULES)),
    "excluded content": Setup(
        flags=("--allow-all",),
        rules={"allow_all": True},
        write=settings(contentExclusion={"*": [".env", "secrets/**", "*.pem"]}),
    ),
    "addresses": Setup(
        write=settings(allowedUrls=["https://example.com"], deniedUrls=["evil.example"])
    ),
    "answers that were kept": Setup(write=approved),
}


async def decide_in_a_run(cli: Cli, setup: Setup, commands: list[str]) -> list[tuple[str, str]]:
    """What becomes of each call in a session with these flags; none of them is run."""
    runtime = Runtime(env=cli.env, provider=ScriptedProvider(Script.of([])))
    options = build_options(parse(["-C", str(cli.cwd), *setup.flags]))
    live = await runtime.create(options)
    run = live._run
    (permissions,) = [one for one in run.agent.pipeline if isinstance(one, Permissions)]
    decisions = []
    try:
        for number, command in enumerate(commands):
            args = {"command": command, "description": "x"}
            call = ToolCall(id=str(number), name="bash", arguments="{}")
            outcome = await permissions.before_tool(
                run, PendingCall(call=call, tool=BASH, args=args)
            )
            if isinstance(outcome, PendingCall):
                decisions.append(("allow", ""))
            elif outcome.text.startswith(UNAVAILABLE):
                decisions.append(("ask", outcome.text.removeprefix(UNAVAILABLE)[2:-1]))
            else:
                decisions.append(("deny", outcome.text.removeprefix("Permission denied: ")))
    finally:
        await live.close()
    return decisions


async def explain(cli: Cli, setup: Setup, commands: list[str]) -> list[tuple[str, str]]:
    requests = [
        {"command": command, "cwd": str(cli.cwd), "rule_sets": {"run": setup.rules}}
        for command in commands
    ]
    lines = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    outcome = await cli.run("permissions", "explain", "--jsonl", stdin=lines)
    assert outcome.code == 0, outcome.notes
    answers = [(one["decisions"]["run"], one["reasons"]["run"]) for one in outcome.lines]
    return [(verdict, "" if verdict == "allow" else why) for verdict, why in answers]


@pytest.mark.parametrize("name", SETUPS)
async def test_explain_and_a_run_decide_alike_over_the_whole_corpus(cli: Cli, name: str) -> None:
    setup = SETUPS[name]
    setup.write(cli)
    commands = corpus()
    explained = await explain(cli, setup, commands)
    happened = await decide_in_a_run(cli, setup, commands)
    differing = [
        (command, said, done)
        for command, said, done in zip(commands, explained, happened, strict=True)
        if said != done
    ]
    assert differing == []
    assert {verdict for verdict, _ in happened} >= {"allow", "ask"}


@pytest.mark.parametrize(
    ("where", "flags", "decision"),
    [
        ("user", (), "allow: "),
        ("user", ("--deny-tool", "shell(frob)"), "deny: "),
        ("repository", (), "ask: No rule allows frob."),
        ("repository", ("--trust-folder",), "allow: "),
    ],
)
async def test_rules_in_settings_files_are_explained(
    cli: Cli, where: str, flags: tuple[str, ...], decision: str
) -> None:
    """It said "ask" where a run would have allowed or denied."""
    settings(where, permissions={"allow": ["shell(frob)"]})(cli)
    outcome = await cli.run("permissions", "explain", "frob x", *flags)
    assert outcome.code == 0, outcome.notes
    assert outcome.text.split("\n")[-2].startswith(decision)
    untrusted = where == "repository" and not flags
    assert ("is not trusted" in outcome.notes) == untrusted


async def test_the_words_of_an_explanation_are_the_words_of_a_run(cli: Cli) -> None:
    settings(permissions={"deny": ["shell(frob)"]})(cli)
    outcome = await cli.run("permissions", "explain", "frob x", "--json")
    answer = json.loads(outcome.text)
    async with serving([{"tools": [bash("frob x")]}, "done"]) as server:
        ran = await cli.use(server).ask("go")
    (end,) = ran.of("tool.execution_complete")
    assert answer["decisions"] == {"given": "deny"}
    assert answer["reasons"]["given"] in end["error"]["message"]


async def test_explaining_remembers_nothing(cli: Cli) -> None:
    trusted(cli)
    before, temporary = snapshot(cli.home), cli.cwd.parent / "temporary"
    temporary.mkdir()
    await cli.run("permissions", "explain", "make", env={"TMPDIR": str(temporary)})
    assert snapshot(cli.home) == before
    assert list(temporary.iterdir()) == []


def snapshot(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in files if "last-good" not in str(path)}


async def test_decisions_without_a_fence_are_explained(cli: Cli) -> None:
    """What the fence reported had no session to be reported in, and that was the answer."""
    settings(sandbox={"fence": "none"})(cli)
    outcome = await cli.run("permissions", "explain", "ls")
    assert outcome.code == 0
    assert "fence: none: it is harmless as it is written" in outcome.text
    denied = await cli.run("permissions", "explain", "ls *", "--deny-tool=read(.env)")
    assert denied.code == 0
    assert "ask: " in denied.text
    request = json.dumps({"command": "ls", "rule_sets": {"none": {}}}).encode() + b"\n"
    answered = await cli.run("permissions", "explain", "--jsonl", stdin=request * 2)
    assert [json.loads(line)["decisions"] for line in answered.text.splitlines()] == [
        {"none": "allow"}
    ] * 2


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        ("none", "it is switched off: only the plainest commands run unasked"),
        ("seatbelt", "there is no sandbox-exec"),
    ],
)
async def test_doctor_names_the_fence_that_the_settings_choose(
    cli: Cli, fence: str, said: str
) -> None:
    settings(sandbox={"fence": fence})(cli)
    outcome = await cli.run("doctor", "--offline")
    assert said in outcome.text
    assert "Remove sandbox.fence from" in outcome.text
