"""Hooks from files, in runs of the installed program."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from customizekit import write
from hookkit import keeping, kept, saying, stored, tool_errors, write_hooks
from trimtab.testing.playing import play
from trimtab.workspace.process_tracking import is_alive

DONE = {"text": "Done."}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def touch(cli: Cli, hooks: dict[str, Any], *args: str, where: str = "user") -> Any:
    """A run in which the model wants to create a file, with these hooks."""
    write_hooks(cli, hooks, where)
    async with serving([{"tools": [bash("touch made")]}, DONE, *[DONE] * 12]) as server:
        cli.use(server)
        return await cli.ask("go", *args)


@pytest.mark.proves("HOOK-01", "HOOK-02", "HOOK-06", "HOOK-07")
async def test_a_hook_denies_a_call_and_the_model_reads_why(cli: Cli) -> None:
    denial = saying({"permissionDecision": "deny", "permissionDecisionReason": "not today"})
    outcome = await touch(cli, {"preToolUse": [denial]})
    assert tool_errors(outcome) == ["Denied by preToolUse hook: not today"]
    assert outcome.of("tool.execution_complete")[0]["error"]["code"] == "denied"
    assert not (cli.cwd / "made").exists()


BROKEN = [
    ("crashes", {"bash": "exit 7"}, "code 7"),
    ("says no by its exit code", {"bash": "echo because >&2; exit 2"}, "because"),
    ("hangs", {"bash": "sleep 60", "timeoutSec": 0.2}, "0.2 s"),
    ("prints nonsense", {"bash": "echo nonsense"}, "not JSON"),
    ("prints a list", {"bash": "echo []"}, "not a JSON object"),
    ("says something unheard of", saying({"permissionDecision": "maybe"}), "maybe"),
    ("changes arguments to nonsense", saying({"modifiedArgs": [1]}), "modifiedArgs"),
    ("does not exist", {"exec": "no-such-program-here", "args": []}, "cannot be started"),
    ("is killed", {"bash": "kill -9 $$"}, "-9"),
    ("floods", {"bash": "yes"}, "more output than a hook may"),
    ("has a folder that is gone", {"bash": "true", "cwd": "/no/such/folder"}, "cannot be started"),
    ("speaks to a plain address", {"type": "http", "url": "http://example.com/"}, "https"),
    ("speaks to this machine", {"type": "http", "url": "https://localhost/"}, "this machine"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "hook", "reason"), BROKEN, ids=[row[0] for row in BROKEN])
async def test_a_guard_that_fails_denies(cli: Cli, _: str, hook: Any, reason: str) -> None:
    outcome = await touch(cli, {"preToolUse": [hook]})
    assert reason in tool_errors(outcome)[0]
    assert not (cli.cwd / "made").exists()


@pytest.mark.proves("HOOK-15")
async def test_a_hook_that_only_informs_may_fail_and_the_rest_goes_on(cli: Cli) -> None:
    hooks = {"postToolUse": [{"bash": "exit 7"}, keeping("after")]}
    outcome = await touch(cli, hooks)
    assert outcome.code == 0
    assert (cli.cwd / "made").exists()
    assert kept(cli, "after")["toolResult"]["resultType"] == "success"
    ends = [end for end in stored(cli, "hook.end") if end["hookType"] == "postToolUse"]
    assert [end["success"] for end in ends] == [False, True]
    assert "code 7" in ends[0]["error"]["message"]


@pytest.mark.proves("HOOK-14")
@pytest.mark.parametrize("order", [1, -1])
async def test_of_several_hooks_the_strictest_wins_in_any_order(cli: Cli, order: int) -> None:
    hooks = [saying({"permissionDecision": "allow"}), {"bash": "exit 2"}, saying({})][::order]
    outcome = await touch(cli, {"preToolUse": hooks})
    assert not (cli.cwd / "made").exists()
    assert "Denied by preToolUse hook" in tool_errors(outcome)[0]
    assert len(stored(cli, "hook.start")) == len(stored(cli, "hook.end")) == 3


@pytest.mark.proves("HOOK-08")
async def test_changed_arguments_run_and_are_judged_again(cli: Cli) -> None:
    change = saying({"modifiedArgs": {"command": "touch other", "description": "x"}})
    await touch(cli, {"preToolUse": [change]})
    assert (cli.cwd / "other").exists()
    assert not (cli.cwd / "made").exists()
    outcome = await touch(cli, {"preToolUse": [change]}, "--deny-tool", "shell(touch)")
    assert "The rule shell(touch) forbids" in tool_errors(outcome)[0]


async def test_a_hook_that_judged_before_another_changed_the_call_judges_again(cli: Cli) -> None:
    guard = {"bash": "if grep -q forbidden; then echo no >&2; exit 2; fi"}
    change = saying({"modifiedArgs": {"command": "touch forbidden", "description": "x"}})
    outcome = await touch(cli, {"preToolUse": [guard, change]})
    assert tool_errors(outcome) == ["Denied by preToolUse hook: no"]
    assert not (cli.cwd / "forbidden").exists()


async def test_a_hooks_allow_spares_the_question_but_beats_no_deny_rule(cli: Cli) -> None:
    write_hooks(cli, {"preToolUse": [saying({"permissionDecision": "allow"})]}, "user")
    calls = [bash("touch one"), bash("git push"), bash("rm -rf ../elsewhere")]
    async with serving([{"tools": calls}, DONE]) as server:
        cli.use(server)
        args = ("-p", "go", "--output-format", "json", "--deny-tool", "shell(git push)")
        outcome = await cli.run(*args)
    assert (cli.cwd / "one").exists()
    errors = tool_errors(outcome)
    assert any("shell(git push) forbids" in error for error in errors)
    assert len(errors) == 2


async def test_a_hook_can_have_a_question_asked_that_nobody_would_ask(cli: Cli) -> None:
    outcome = await touch(cli, {"preToolUse": [saying({"permissionDecision": "ask"})]})
    assert not (cli.cwd / "made").exists()
    assert "could not request permission" in tool_errors(outcome)[0]


VERDICTS = [
    ("allow", saying({"behavior": "allow"}), True, ""),
    ("deny", saying({"behavior": "deny", "message": "ask my boss"}), False, "ask my boss"),
    ("crash", {"bash": "exit 1"}, False, "code 1"),
    ("nothing", saying({}), False, "could not request permission"),
]


@pytest.mark.parametrize(("_", "hook", "made", "text"), VERDICTS, ids=[row[0] for row in VERDICTS])
async def test_a_permission_hook_answers_in_the_place_of_a_person(
    cli: Cli, _: str, hook: Any, made: bool, text: str
) -> None:
    write_hooks(cli, {"permissionRequest": [hook]}, "user")
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        cli.use(server)
        outcome = await cli.run("-p", "go", "--output-format", "json")
    assert (cli.cwd / "made").exists() is made
    assert text in "".join(tool_errors(outcome))


@pytest.mark.proves(
    "HOOK-03", "HOOK-04", "HOOK-05", "HOOK-09", "HOOK-10", "HOOK-18", "HOOK-21", "OUTER-08"
)
async def test_every_event_of_a_run_reaches_its_hook_with_its_input(cli: Cli) -> None:
    names = [
        "userPromptSubmitted", "userPromptTransformed", "sessionStart", "preToolUse",
        "postToolUse", "agentStop", "sessionEnd",
    ]  # fmt: skip
    await touch(cli, {name: [keeping(name)] for name in names})
    given = {name: kept(cli, name) for name in names}
    for payload in given.values():
        assert payload["cwd"] == str(cli.cwd)
        assert payload["timestamp"] > 1_600_000_000_000
        assert payload["sessionId"]
    assert given["userPromptSubmitted"]["prompt"] == "go"
    assert given["sessionStart"]["source"] == "new"
    assert given["preToolUse"]["toolName"] == "bash"
    assert given["preToolUse"]["toolArgs"]["command"] == "touch made"
    assert given["postToolUse"]["toolResult"]["resultType"] == "success"
    assert given["agentStop"]["stop_hook_active"] is False
    assert given["agentStop"]["stopReason"] == "end_turn"
    assert Path(given["agentStop"]["transcriptPath"]).name == "events.jsonl"
    assert given["sessionEnd"]["reason"] == "complete"
    assert [start["hookType"] for start in stored(cli, "hook.start")] == names


@pytest.mark.proves("OUTER-14")
async def test_a_hook_reads_the_transcript_while_the_session_runs(cli: Cli) -> None:
    read = (
        "import json,sys; given=json.load(sys.stdin); print(open(given['transcriptPath']).read())"
    )
    hook = {"bash": f'{sys.executable} -c "{read}" > transcript'}
    await touch(cli, {"agentStop": [hook]})
    lines = (cli.cwd / "transcript").read_text().split("\n")
    types = [json.loads(line)["type"] for line in lines if line]
    assert types[0] == "session.start"
    assert types.index("tool.execution_complete") < len(types) - 1
    assert "assistant.message" in types
    assert "session.shutdown" not in types


@pytest.mark.proves("HOOK-04")
async def test_the_hook_at_the_end_is_told_why_a_session_failed(cli: Cli) -> None:
    write_hooks(cli, {"sessionEnd": [keeping("end")]}, "user")
    async with serving([{"error": {"status": 400, "message": "bad request"}}]) as server:
        await cli.use(server).ask("go")
    given = kept(cli, "end")
    assert given["reason"] == "error"
    assert "bad request" in str(given["error"])


@pytest.mark.proves("HOOK-12")
async def test_an_error_hook_hears_of_a_model_that_fails(cli: Cli) -> None:
    write_hooks(cli, {"errorOccurred": [keeping("error")]}, "user")
    async with serving([{"error": {"status": 400, "message": "bad"}}]) as server:
        await cli.use(server).ask("go")
    given = kept(cli, "error")
    assert given["errorContext"] == "model_call"
    assert given["recoverable"] is False
    assert "bad" in given["error"]["message"]


async def test_a_stop_hook_sends_the_agent_back_eight_times_and_no_more(cli: Cli) -> None:
    outcome = await touch(cli, {"agentStop": [saying({"decision": "block", "reason": "more"})]})
    assert outcome.result["usage"]["modelCalls"] == 10
    assert outcome.code == 3
    assert outcome.of("session.warning")[-1]["warningType"] == "agent_stop_block_limit"
    actives = [
        start["input"]["stop_hook_active"]
        for start in stored(cli, "hook.start")
        if start["hookType"] == "agentStop"
    ]
    assert actives == [False] + [True] * 8


async def test_a_changed_prompt_and_context_reach_the_model(cli: Cli) -> None:
    hooks = {
        "userPromptSubmitted": [saying({"modifiedPrompt": "better"})],
        "sessionStart": [saying({"additionalContext": "the house rules"})],
        "postToolUse": [saying({"modifiedResult": {"textResultForLlm": "seen otherwise"}})],
    }
    write_hooks(cli, hooks, "user")
    async with serving([{"tools": [bash("echo hi")]}, DONE]) as server:
        await cli.use(server).ask("words")
        shown = server.requests[-1].body.decode()
    assert "better" in shown
    assert "the house rules" in shown
    assert "seen otherwise" in shown


async def test_hooks_in_claudes_words_are_spoken_to_in_claudes_words(cli: Cli) -> None:
    answer = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "as Claude would",
        }
    }
    (cli.cwd / ".claude").mkdir()
    settings = {
        "hooks": {
            "PreToolUse": [
                {"matcher": "Write|Edit", "hooks": [saying({"decision": "block"})]},
                {"matcher": "Bash", "hooks": [keeping("claude"), saying(answer)]},
            ]
        }
    }
    (cli.cwd / ".claude/settings.json").write_text(json.dumps(settings))
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go", "--trust-folder")
    assert tool_errors(outcome) == ["Denied by preToolUse hook: as Claude would"]
    given = kept(cli, "claude")
    assert given["hook_event_name"] == "PreToolUse"
    assert given["tool_name"] == "Bash"
    assert given["tool_input"]["command"] == "touch made"
    assert given["session_id"]


async def test_a_stop_hook_in_claudes_words_blocks_by_exit_code_two(cli: Cli) -> None:
    once = '[ -e "$HOME/asked" ] || { touch "$HOME/asked"; echo "test it" >&2; exit 2; }'
    await touch(cli, {"Stop": [{"hooks": [{"type": "command", "command": once}]}]})
    contents = [message["content"] for message in stored(cli, "user.message")]
    assert "test it" in contents


@pytest.mark.parametrize(("matcher", "runs"), [("bash", True), ("view|edit", False), ("ba", False)])
async def test_a_matcher_is_an_anchored_expression(cli: Cli, matcher: str, runs: bool) -> None:
    await touch(cli, {"preToolUse": [{"bash": "exit 2", "matcher": matcher}]})
    assert (cli.cwd / "made").exists() is not runs


async def test_a_prompt_hook_starts_the_session_before_the_prompt(cli: Cli) -> None:
    write_hooks(cli, {"sessionStart": [{"type": "prompt", "prompt": "read the rules"}]}, "user")
    async with serving([DONE, DONE]) as server:
        await cli.use(server).ask("words")
    contents = [message["content"] for message in stored(cli, "user.message")]
    assert contents == ["read the rules", "words"]


async def test_hooks_can_all_be_switched_off(cli: Cli) -> None:
    (cli.home / "settings.json").write_text('{"disableAllHooks": true, // for now\n}')
    await touch(cli, {"preToolUse": [{"bash": "exit 2"}]})
    assert (cli.cwd / "made").exists()
    assert stored(cli, "hook.start") == []


async def test_no_hook_gets_a_provider_key(cli: Cli) -> None:
    await touch(cli, {"preToolUse": [{"bash": "env > $HOME/env; true"}]})
    environment = (Path(cli.env["HOME"]) / "env").read_text()
    assert "COPILOT_AGENT_SESSION_ID=" in environment
    assert "test-key-0123456789" not in environment


async def test_what_a_hook_leaves_running_is_gone_and_not_waited_for(cli: Cli) -> None:
    await touch(
        cli, {"preToolUse": [{"bash": "sleep 300 & echo $! > $HOME/pid", "timeoutSec": 20}]}
    )
    assert (cli.cwd / "made").exists()
    pid = (Path(cli.env["HOME"]) / "pid").read_text().strip()
    assert not is_alive(int(pid))


async def test_notification_and_compaction_hooks_hear_of_what_happens(cli: Cli) -> None:
    hooks = {
        "notification": [keeping("notification") | {"matcher": "permission_prompt"}],
        "preCompact": [keeping("compaction") | {"matcher": "manual"}],
    }
    write_hooks(cli, hooks, "user")
    async with serving(
        [{"tools": [bash("touch made")]}, DONE, DONE, {"text": "A summary."}]
    ) as server:
        cli.use(server)
        await cli.run("-p", "go", "--output-format", "json")
        assert "touch made" in kept(cli, "notification")["message"]
        await cli.run("-p", "/compact", "--continue", "--output-format", "json")
    assert kept(cli, "compaction")["trigger"] == "manual"


async def test_a_run_ends_when_hooks_have_heard_of_what_happened(cli: Cli) -> None:
    slow = {"type": "command", "bash": "sleep 0.5; cat > $HOME/notification.json"}
    write_hooks(cli, {"notification": [slow]}, "user")
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        await cli.use(server).run("-p", "go", "--output-format", "json")
    assert "touch made" in kept(cli, "notification")["message"]


async def test_a_hook_can_tell_how_far_it_is(cli: Cli) -> None:
    lines = [json.dumps({"type": "progress", "message": word}) for word in ("one", "two")]
    echo = "; ".join(f"echo '{line}'" for line in lines)
    outcome = await touch(cli, {"preToolUse": [{"bash": f"{echo}; printf '{{}}'"}]})
    assert [progress["message"] for progress in outcome.of("hook.progress")] == ["one", "two"]
    assert (cli.cwd / "made").exists()


UNREADABLE = {
    "a file that is not JSON": (
        '{"version": 1,\n "hooks": {\n  "preToolUse": [\n}\n',
        4,
        "not JSON",
    ),
    "a guard without a command": (
        '{"version": 1, "hooks": {\n "preToolUse": [\n  {"type": "command"}]}}',
        3,
        "names no command",
    ),
    "a guard of an unknown type": (
        '{"version": 1, "hooks": {"preToolUse": [\n  {"type": "telepathy"}]}}',
        2,
        "is not known",
    ),
}


@pytest.mark.parametrize("where", ["user", "repository"])
@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_guard_that_cannot_be_read_denies_and_says_which_file_and_line(
    cli: Cli, name: str, where: str
) -> None:
    text, line, problem = UNREADABLE[name]
    file = write_hooks(cli, {}, where)
    file.write_text(text)
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go", "--trust-folder")
    assert not (cli.cwd / "made").exists()
    (error,) = tool_errors(outcome)
    told = [
        warning["message"]
        for warning in outcome.of("session.warning")
        if warning["warningType"] == "hook_configuration"
    ]
    (warning,) = told
    for said in (error, warning, outcome.notes):
        assert f"{file}, line {line}: the guard cannot be read" in said
        assert problem in said
        assert "correct the file or remove it" in said
        assert "sh -c" not in said
    assert "--allow-all-tools" not in outcome.notes
    types = outcome.types()
    assert types.index("session.warning") < types.index("user.message")


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_guard_that_cannot_be_read_is_listed_as_what_it_is(cli: Cli, name: str) -> None:
    text, line, problem = UNREADABLE[name]
    file = write_hooks(cli, {}, "user")
    file.write_text(text)
    listed = await cli.run("hooks", "list")
    assert "preToolUse  denies everything, because it cannot be read" in listed.text
    assert f"{file}:{line}" in listed.text
    (described,) = json.loads((await cli.run("hooks", "list", "--json")).text)["hooks"]
    assert (described["type"], described["line"]) == ("unreadable", line)
    assert problem in described["does"]
    tried = await cli.run("hooks", "test", "preToolUse")
    assert "correct the file or remove it" in tried.text
    shown = await cli.run("customizations")
    assert "cannot be read" in shown.text
    for outcome in (listed, tried, shown):
        assert "sh -c" not in outcome.text + outcome.notes


async def test_settings_that_cannot_be_parsed_and_name_hooks_deny_as_well(cli: Cli) -> None:
    guard = {"preToolUse": [{"type": "command", "bash": "exit 2"}]}
    (cli.home / "settings.json").write_text(json.dumps({"hooks": guard})[:-1] + ",,}")
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 4
    assert "settings.json" in outcome.notes
    assert not (cli.cwd / "made").exists()


async def test_settings_that_cannot_be_parsed_and_name_no_hooks_deny_nothing(cli: Cli) -> None:
    (cli.home / "settings.json").write_text('{"model": "scripted",,}')
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0, outcome.notes
    assert (cli.cwd / "made").exists()


async def test_a_guard_that_cannot_be_read_can_be_switched_off_by_its_file(cli: Cli) -> None:
    file = write_hooks(cli, {}, "user")
    file.write_text("{")
    (cli.home / "settings.json").write_text(json.dumps({"disabledHooks": [file.name]}))
    async with serving([{"tools": [bash("touch made")]}, DONE]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0, outcome.notes


async def test_the_prompt_hook_runs_between_assembling_everything_and_the_model_call(
    tmp_path: Path,
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    write(work / "AGENTS.md", "Always write in verse.\n")
    write(
        home / "skills" / "rhyme" / "SKILL.md", "---\nname: rhyme\ndescription: Rhymes.\n---\nx\n"
    )
    write(home / "agents" / "poet.agent.md", "---\nname: poet\ndescription: Writes.\n---\nx\n")
    hook = {"type": "command", "bash": "true"}
    hooks = {"version": 1, "hooks": {"userPromptSubmitted": [hook]}}
    write(home / "hooks" / "hooks.json", json.dumps(hooks))
    played = await play(["done"], "go", cwd=str(work), home=str(home))
    types = played.types()
    assembled = [types.index(name) for name in ("system.message", "session.tools_updated")]
    assert max(assembled) < types.index("hook.start") < types.index("hook.end")
    assert types.index("hook.end") < types.index("user.message") < types.index("model.call_start")
    (system,) = played.of("system.message")
    (sent,) = played.requests
    assert sent.system == system.content
    described = system.content + "".join(spec.description for spec in sent.tools)
    assert all(word in described for word in ("Always write in verse", "rhyme", "poet"))
