"""What the answers of hooks come to: several of them, errors, hooks that are switched off or code."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from hookkit import saying, tool_errors, write_hooks
from trimtab.contracts.options import Client, PermissionOptions, SessionOptions
from trimtab.contracts.run import Prompt
from trimtab.hooks.callbacks import Callbacks
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider
from trimtab.runtime.runtime import Runtime

DONE = {"text": "Done."}
FAILURE = {"error": {"status": 400, "message": "bad"}}
DENIAL = {"permissionDecision": "deny", "permissionDecisionReason": "not here"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.mark.proves("HOOK-13")
@pytest.mark.parametrize(
    ("answer", "code", "calls"),
    [
        ({"errorHandling": "retry", "retryCount": 1}, 0, 2),
        ({"errorHandling": "skip"}, 0, 1),
        ({"errorHandling": "abort"}, 8, 1),
    ],
)
async def test_an_error_hook_decides_what_becomes_of_a_failed_call(
    cli: Cli, answer: dict[str, Any], code: int, calls: int
) -> None:
    write_hooks(cli, {"errorOccurred": [saying(answer)]}, "user")
    async with serving([FAILURE, DONE]) as server:
        outcome = await cli.use(server).ask("go")
        assert len(server.requests) == calls
    assert outcome.code == code
    warned = [data["warningType"] for data in outcome.of("session.warning")]
    assert ("model_call_skipped" in warned) == (answer["errorHandling"] == "skip")


@pytest.mark.proves("HOOK-16")
async def test_of_several_changes_the_last_one_given_counts(cli: Cli) -> None:
    answers = [{"modifiedPrompt": "words-one"}, {"modifiedPrompt": "words-two"}, {}]
    write_hooks(cli, {"userPromptSubmitted": [saying(one) for one in answers]}, "user")
    async with serving([DONE]) as server:
        await cli.use(server).ask("words")
        shown = server.requests[0].body.decode()
    assert "words-two" in shown
    assert "words-one" not in shown


@pytest.mark.parametrize(
    "name",
    ["hooks", "hooks.json", "exit 2", "preToolUse exit 2"],
    ids=["stem", "file", "does", "name"],
)
async def test_a_hook_can_be_switched_off_by_its_person(cli: Cli, name: str) -> None:
    write_hooks(cli, {"preToolUse": [{"type": "command", "bash": "exit 2"}]}, "user")
    async with serving([{"tools": [bash("touch made")]}, DONE] * 2) as server:
        refused = await cli.use(server).ask("go")
        assert tool_errors(refused)
        (cli.home / "settings.json").write_text(json.dumps({"disabledHooks": [name]}))
        await cli.ask("go")
    assert (cli.cwd / "made").exists()
    listed = await cli.run("hooks", "list")
    assert "disabled: does not run" in listed.text


async def test_a_repository_cannot_switch_off_what_guards_the_person(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [saying(DENIAL)]}, "user")
    folder = cli.cwd / ".github" / "copilot"
    folder.mkdir(parents=True)
    off = {"disableAllHooks": True, "disabledHooks": ["hooks", "hooks.json"]}
    (folder / "settings.json").write_text(json.dumps(off))
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go", "--trust-folder")
    assert "not here" in tool_errors(outcome)[0]


async def test_all_hooks_can_be_switched_off_by_their_person(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [saying(DENIAL)]}, "user")
    (cli.home / "settings.json").write_text('{"disableAllHooks": true}')
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        await cli.use(server).ask("go")
    assert (cli.cwd / "made").exists()


async def run_with(tmp_path: Path, callbacks: dict[str, Any]) -> list[Any]:
    """One prompt in a session of this process, with hooks in Python."""
    script = Script.of([{"tools": [bash("touch made")]}, "done", "done"])
    env = {"COPILOT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    events: list[Any] = []
    client = Client(hooks=Callbacks(callbacks), on_event=lambda event, _: events.append(event))
    runtime = Runtime(env=env, provider=ScriptedProvider(script))
    allowed = PermissionOptions(allow_all_tools=True, allow_all_paths=True)
    options = SessionOptions(cwd=str(tmp_path), permissions=allowed)
    live = await runtime.create(options, client)
    try:
        await live.ask(Prompt(text="words"))
    finally:
        await live.close()
    return events


@pytest.mark.proves("HOOK-14", "HOOK-20")
async def test_hooks_in_code_are_lists_of_functions_asked_in_order(tmp_path: Path) -> None:
    asked: list[str] = []

    async def first(given: dict[str, Any]) -> dict[str, Any]:
        asked.append("first")
        return {"modifiedPrompt": "one"}

    async def second(given: dict[str, Any]) -> None:
        asked.append("second")
        raise ValueError("a bug")

    async def third(given: dict[str, Any]) -> dict[str, Any]:
        asked.append("third")
        return {"modifiedPrompt": "two"}

    async def nothing(given: dict[str, Any]) -> None:
        asked.append(given["toolName"])

    events = await run_with(
        tmp_path, {"userPromptSubmitted": [first, second, third], "preToolUse": [nothing]}
    )
    assert asked == ["first", "second", "third", "bash"]
    (said,) = [event.data.content for event in events if event.type == "user.message"]
    assert said == "two"
    assert (tmp_path / "made").exists()


async def test_a_guard_in_code_that_fails_denies(tmp_path: Path) -> None:
    async def allow(given: dict[str, Any]) -> dict[str, Any]:
        return {"permissionDecision": "allow"}

    async def broken(given: dict[str, Any]) -> None:
        raise ValueError("a bug")

    events = await run_with(tmp_path, {"preToolUse": [allow, broken]})
    (end,) = [event.data for event in events if event.type == "tool.execution_complete"]
    assert end.error["code"] == "denied"
    assert not (tmp_path / "made").exists()


def test_hooks_in_code_for_an_event_there_is_not_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="preToolUsage"):
        Callbacks({"preToolUsage": []})
