"""Sessions whose prompts another agent's program answers, seen from outside."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from clikit import Cli, serving
from runtimekit import NAMES, StandIns, logged
from toolkit import is_running, until

MAKE = {"run": "printf hello > made.txt; cat made.txt"}
CACHED = {"input": 100, "output": 10, "cached": 40}


@pytest.mark.parametrize(
    ("runtime", "tokens", "cost"),
    [
        ("claude", (300, 30, 120), 0.25),
        ("codex", (100, 10, 40), None),
        ("copilot", (None, 30, None), None),
        ("opencode", (300, 30, 120), 1.5),
        ("gemini", (100, 10, 40), None),
        ("pi", (300, 30, 120), 0.375),
    ],
)
async def test_a_runtime_does_the_work_and_its_events_become_ours(
    cli: Cli, runtime: str, tokens: tuple[int | None, ...], cost: float | None
) -> None:
    programs = StandIns(cli, runtime)
    programs.plan("I look.", MAKE, "All done.", usage=CACHED)
    outcome = await programs.ask(runtime, "--allow-all")
    assert outcome.code == 0, outcome.text + outcome.notes
    (call,) = outcome.of("tool.execution_start")
    assert (call["toolName"], call["arguments"]["command"]) == ("bash", MAKE["run"])
    (done,) = outcome.of("tool.execution_complete")
    assert (done["success"], done["result"]["content"]) == (True, "hello")
    texts = [message["content"] for message in outcome.of("assistant.message")]
    assert [text for text in texts if text] == ["I look.", "All done."]
    (started,) = outcome.of("trimtab.runtime_started")
    assert (started["runtime"], started["version"]) == (runtime, "9.8.7")
    (ended,) = outcome.of("trimtab.runtime_ended")
    assert ended["success"] is True
    (changed,) = outcome.of("trimtab.workspace_changed")
    assert (changed["toolCallId"], changed["reason"]) == (call["toolCallId"], "shell")
    assert all(event["runtime"] == runtime for event in outcome.of("trimtab.runtime_event"))
    (given,) = programs.got
    assert given["prompt"].endswith("do it")
    assert given["cwd"] == str(cli.cwd)
    usage = outcome.result["usage"]
    told = usage["tokens"]
    assert (told["input"], told["output"], told["cacheRead"]) == tokens
    assert usage["costUsd"] == cost


@pytest.mark.parametrize(
    ("runtime", "status", "message", "code"),
    [
        ("claude", 401, "Invalid API key", 7),
        ("codex", 429, "unexpected status 429 Too many requests", 8),
        ("copilot", 404, "Model 'nope' not found", 8),
        ("opencode", 401, "invalid x-api-key", 7),
        ("gemini", None, "exhausted your capacity", 8),
        ("pi", None, "401 invalid x-api-key", 7),
    ],
)
async def test_success_is_what_the_result_says(
    cli: Cli, runtime: str, status: int | None, message: str, code: int
) -> None:
    programs = StandIns(cli, runtime)
    programs.plan(fail={"status": status, "message": message}, exit=0)
    outcome = await programs.ask(runtime, "--allow-all")
    assert outcome.code == code, outcome.notes
    assert message in outcome.notes
    (ended,) = outcome.of("trimtab.runtime_ended")
    assert ended["success"] is False
    assert len(outcome.notes.strip().splitlines()) == 1


async def test_a_program_that_crashes_is_told_with_its_last_words(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan("I look.", {"crash": 3})
    outcome = await programs.ask("codex", "--allow-all")
    assert outcome.code == 8
    assert "exited with 3 without a result (panic: uncaught internal error)" in outcome.notes


async def test_a_missing_program_is_refused_with_how_to_install_it(cli: Cli) -> None:
    outcome = await cli.run("-p", "hi", "--agent-runtime", "claude")
    assert outcome.code == 2
    assert "npm install -g @anthropic-ai/claude-code" in outcome.notes
    assert not cli.logs()


@pytest.mark.parametrize("prompted", [False, True])
async def test_our_rules_decide_about_each_call_of_a_runtime_that_asks(
    cli: Cli, prompted: bool
) -> None:
    programs = StandIns(cli)
    denied = {"run": "rm -rf keep", "prompt": prompted}
    programs.plan({**MAKE, "prompt": prompted}, denied, "All done.")
    (cli.cwd / "keep").mkdir()
    flags = ("--allow-tool", "shell(printf)", "--allow-tool", "shell(cat)", "--allow-tool", "write")
    outcome = await programs.ask("claude", *flags, "--deny-tool", "shell(rm)")
    assert outcome.code == 4
    first, second = outcome.of("tool.execution_complete")
    assert first["success"] is True
    assert second["error"]["code"] == "denied"
    assert (cli.cwd / "made.txt").read_text() == "hello"
    assert (cli.cwd / "keep").is_dir()
    (denial,) = outcome.result["deniedCalls"]
    assert (denial["toolName"], denial["toolCallId"]) == ("bash", "call_2")


async def test_a_program_that_does_not_ask_although_it_should_is_stopped(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan({"run": "touch unasked", "unasked": True}, {"run": "touch later"}, "All done.")
    outcome = await programs.ask("claude", "--allow-all")
    assert outcome.code == 4
    assert "ran bash without asking" in outcome.notes
    assert not (cli.cwd / "later").exists()


async def test_a_command_that_nobody_allowed_is_denied_without_a_person(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan({"run": "curl example.com > out"}, "All done.")
    outcome = await programs.ask("claude")
    assert outcome.code == 4
    assert not (cli.cwd / "out").exists()


async def test_a_hook_decides_and_may_change_what_a_runtime_runs(cli: Cli) -> None:
    hook = cli.home / "hooks" / "guard.json"
    hook.parent.mkdir()
    changed = {"modifiedArgs": {"command": "printf changed > made.txt"}}
    command = f"cat > {cli.home}/seen.json; echo '{json.dumps(changed)}'"
    entry = {"type": "command", "bash": command}
    hook.write_text(json.dumps({"version": 1, "hooks": {"preToolUse": [entry]}}))
    programs = StandIns(cli)
    programs.plan(MAKE, "All done.")
    outcome = await programs.ask("claude", "--allow-all")
    assert outcome.code == 0, outcome.notes
    seen = json.loads((cli.home / "seen.json").read_text())
    assert (seen["toolName"], seen["toolArgs"]["command"]) == ("bash", MAKE["run"])
    assert (cli.cwd / "made.txt").read_text() == "changed"


async def test_a_runtime_that_cannot_ask_needs_everything_allowed(cli: Cli) -> None:
    programs = StandIns(cli)
    outcome = await programs.ask("codex")
    assert outcome.code == 2
    assert "it may only run with --allow-all" in outcome.notes
    assert not programs.got


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--deny-tool", "shell(rm)"), "cannot keep the rule shell(rm)"),
        (("--plan",), "cannot be kept from changing files"),
        (("--excluded-tools", "bash"), "cannot be kept to a list of tools"),
    ],
)
async def test_a_rule_that_a_runtime_cannot_keep_refuses_the_run(
    cli: Cli, flags: tuple[str, ...], said: str
) -> None:
    programs = StandIns(cli)
    outcome = await programs.ask("codex", "--allow-all", *flags)
    assert outcome.code == 2
    assert said in outcome.notes
    assert len(outcome.notes.strip().splitlines()) == 1
    assert not programs.got


async def test_a_guard_refuses_a_runtime_that_would_not_ask_it(cli: Cli) -> None:
    hook = cli.home / "hooks" / "guard.json"
    hook.parent.mkdir()
    entry = {"type": "command", "bash": "echo '{}'"}
    hook.write_text(json.dumps({"version": 1, "hooks": {"preToolUse": [entry]}}))
    programs = StandIns(cli)
    outcome = await programs.ask("codex", "--allow-all")
    assert outcome.code == 2
    assert "cannot be stopped by hooks" in outcome.notes


async def test_plan_mode_holds_a_runtime_that_asks(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan(MAKE, "A plan.")
    outcome = await programs.ask("claude", "--allow-all", "--plan")
    (done,) = outcome.of("tool.execution_complete")
    assert done["error"]["code"] == "denied"
    assert not (cli.cwd / "made.txt").exists()


@pytest.mark.parametrize("runtime", ["claude", "codex", "copilot"])
async def test_a_resumed_session_goes_on_with_the_sessions_of_its_runtime(
    cli: Cli, runtime: str
) -> None:
    programs = StandIns(cli)
    first = await programs.ask(runtime, "--allow-all", prompt="first")
    session = first.result["sessionId"]
    outcome = await cli.run(
        "-p", "second", "--resume", session, "--allow-all", "--output-format", "json"
    )
    assert outcome.code == 0, outcome.notes
    (started,) = outcome.of("trimtab.runtime_started")
    assert started["runtime"] == runtime
    (named,) = first.of("trimtab.runtime_session")
    assert started["resumed"] == named["sessionId"]
    (own,) = programs.sessions
    assert len(own.read_text().splitlines()) == 2


async def test_our_own_loop_can_go_on_with_what_a_runtime_did(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan("I look.", MAKE, "All done.")
    first = await programs.ask("codex", "--allow-all")
    async with serving(["I saw it."]) as server:
        outcome = await cli.use(server).run(
            *("-p", "and now?", "--agent-runtime", "trimtab", "--output-format", "json"),
            *("--resume", first.result["sessionId"]),
        )
        assert outcome.code == 0, outcome.notes
        sent = server.requests[0].served
    assert not outcome.of("trimtab.runtime_started")
    texts = [str(message) for message in sent.messages]
    assert any("hello" in text for text in texts)


async def test_undo_and_blame_know_what_a_runtime_did(cli: Cli) -> None:
    (cli.cwd / "made.txt").write_text("before\n")
    programs = StandIns(cli)
    programs.plan({"run": "echo after > made.txt; echo new > other.txt"}, "All done.")
    outcome = await programs.ask("codex", "--allow-all")
    assert outcome.code == 0, outcome.notes
    blamed = await cli.run("blame", "made.txt", "--json")
    assert outcome.result["sessionId"] in blamed.text, blamed.text + blamed.notes
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert (cli.cwd / "made.txt").read_text() == "before\n"
    assert not (cli.cwd / "other.txt").exists()


async def wait_until_gone(*pids: int) -> None:
    await until(lambda: not any(map(is_running, pids)))


DAEMON = (
    "setsid bash -c 'echo $$ > daemon.pid; exec env -i sleep 300' > /dev/null 2>&1 < /dev/null & "
    "until [ -s daemon.pid ]; do sleep 0.01; done"
)
"""A command that leaves its process group, session, environment and streams."""


async def start_hanging(cli: Cli, programs: StandIns, *flags: str) -> asyncio.subprocess.Process:
    """Start a run whose program hangs after it left a daemon behind."""
    programs.plan({"run": DAEMON}, hang=True)
    process = await cli.start("-p", "go", "--agent-runtime", "codex", "--allow-all", *flags)
    path = cli.cwd / "daemon.pid"
    await until(lambda: path.exists() and path.read_text() != "")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_the_end_of_a_run_ends_everything_its_runtime_started(
    cli: Cli, number: signal.Signals
) -> None:
    programs = StandIns(cli)
    process = await start_hanging(cli, programs)
    daemon = int((cli.cwd / "daemon.pid").read_text())
    (given,) = programs.got
    assert is_running(daemon)
    assert is_running(given["pid"])
    process.send_signal(number)
    await asyncio.wait_for(process.communicate(), 50)
    await wait_until_gone(daemon, given["pid"])
    if number is not signal.SIGKILL:
        assert logged(cli, "trimtab.runtime_ended")[0]["success"] is False


async def test_the_deadline_ends_a_runtime_with_all_it_started(cli: Cli) -> None:
    programs = StandIns(cli)
    process = await start_hanging(cli, programs, "--deadline", "3s")
    _, notes = await asyncio.wait_for(process.communicate(), 50)
    assert process.returncode == 6, notes
    await wait_until_gone(int((cli.cwd / "daemon.pid").read_text()), programs.got[0]["pid"])


async def test_commands_that_a_runtime_leaves_behind_end_with_its_run(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan({"run": DAEMON}, "All done.")
    outcome = await programs.ask("claude", "--allow-all")
    assert outcome.code == 0, outcome.notes
    await wait_until_gone(int((cli.cwd / "daemon.pid").read_text()))


@pytest.mark.parametrize(
    ("flags", "code"), [(("--max-turns", "2"), 6), (("--max-tokens", "150"), 5)]
)
async def test_limits_end_a_runtime(cli: Cli, flags: tuple[str, ...], code: int) -> None:
    programs = StandIns(cli)
    programs.plan("One.", "Two.", "Three.", {"run": "touch late"}, "Four.", usage=CACHED)
    outcome = await programs.ask("claude", "--allow-all", *flags)
    assert outcome.code == code, outcome.notes
    assert not (cli.cwd / "late").exists()


async def test_a_limit_that_cannot_be_enforced_is_refused(cli: Cli) -> None:
    programs = StandIns(cli)
    for flags in (("copilot", "--max-tokens", "9"), ("codex", "--max-budget-usd", "1")):
        outcome = await programs.ask(flags[0], "--allow-all", *flags[1:])
        assert outcome.code == 2
        assert "cannot be enforced" in outcome.notes
    assert not programs.got


async def test_noise_wrong_encodings_and_unknown_lines_do_no_harm(cli: Cli) -> None:
    programs = StandIns(cli)
    noise = [
        {"raw": "Loading plugins…"},
        {"raw": ""},
        {"raw": "\udcff\udcfe not UTF-8 \udc80"},
        {"raw": '{"type": "something.new", "item": [1, null, {"deep": {}}]}'},
        {"raw": '{"type": "item.completed"'},
        {"raw": "[" * 5000},
        {
            "raw": json.dumps(
                {"type": "item.completed", "item": {"type": "x", "text": "y" * 3_000_000}}
            )
        },
        {"raw": "null"},
    ]
    programs.plan(*noise[:4], MAKE, *noise[4:], "All done.")
    outcome = await programs.ask("codex", "--allow-all")
    assert outcome.code == 0, outcome.notes
    kept = [event["event"] for event in outcome.of("trimtab.runtime_event")]
    assert "Loading plugins…" in kept
    assert any(isinstance(event, dict) and event.get("type") == "something.new" for event in kept)
    assert any(isinstance(event, str) and "not UTF-8" in event for event in kept)


async def test_model_effort_and_folders_reach_the_program(cli: Cli, tmp_path: Path) -> None:
    programs = StandIns(cli)
    other = tmp_path / "other"
    other.mkdir()
    flags = ("--model", "opus", "--effort", "high", "--add-dir", str(other), "--allow-all")
    outcome = await programs.ask("claude", *flags)
    assert outcome.code == 0, outcome.notes
    given = programs.got[0]["flags"]
    assert (given["--model"], given["--effort"]) == (["opus"], ["high"])
    assert given["--add-dir"] == [str(other)]


async def test_keys_of_other_services_do_not_reach_the_program(cli: Cli) -> None:
    programs = StandIns(cli)
    cli.env |= {
        "ANTHROPIC_API_KEY": "sk-ant-mine-0123456789",
        "OPENAI_API_KEY": "sk-other-0123456789",
        "COPILOT_PROVIDER_API_KEY": "sk-host-0123456789",
        "MY_SECRET": "a-secret-value-0123",
    }
    programs.plan({"run": "env"}, "All done.")
    outcome = await programs.ask("claude", "--allow-all", "--secret-env-vars", "MY_SECRET")
    assert outcome.code == 0, outcome.notes
    given = programs.got[0]["env"]
    assert "MY_SECRET" not in given
    assert "ANTHROPIC_API_KEY" in given
    assert "OPENAI_API_KEY" not in given
    assert "sk-ant-mine" not in outcome.text
    assert "sk-ant-mine" not in cli.logs()[0].read_text()


async def test_host_models_reach_the_program_through_the_bridge(cli: Cli) -> None:
    programs = StandIns(cli)
    ask = (
        'curl -sf $OPENAI_BASE_URL/chat/completions -H "authorization: Bearer $OPENAI_API_KEY" '
        '-d \'{"model": "any", "messages": [{"role": "user", "content": "hi"}]}\''
    )
    programs.plan({"run": ask}, "All done.")
    async with serving({"otherwise": "From the host."}) as server:
        outcome = await cli.use(server).run(
            *("-p", "go", "--agent-runtime", "pi", "--runtime-models", "host"),
            *("--allow-all", "--output-format", "json"),
        )
        assert outcome.code == 0, outcome.notes
        used = server.usage
    (done,) = outcome.of("tool.execution_complete")
    assert "From the host." in done["result"]["content"]
    usage = outcome.result["usage"]
    assert usage["modelCalls"] == 1
    assert usage["tokens"]["input"] == used.input_tokens
    log = cli.logs()[0].read_text()
    assert "trimtab-lm-" not in log
    assert "test-key-0123456789" not in log


async def test_host_models_and_the_session_have_one_budget(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan(
        {
            "run": "curl -s -o answer -w '%{http_code}' $OPENAI_BASE_URL/chat/completions "
            '-H "authorization: Bearer $OPENAI_API_KEY" -d \'{"model": "any", "messages": []}\''
        },
        fail={"message": "402 no budget", "status": 402},
    )
    async with serving({"otherwise": "No."}) as server:
        outcome = await cli.use(server).run(
            *("-p", "go", "--agent-runtime", "pi", "--runtime-models", "host"),
            *("--allow-all", "--output-format", "json", "--max-tokens", "10"),
        )
        assert not server.requests
    (done,) = outcome.of("tool.execution_complete")
    assert done["result"]["content"] == "402"
    assert outcome.code == 5, outcome.notes


async def test_a_runtime_cannot_be_kept_offline(cli: Cli) -> None:
    programs = StandIns(cli)
    outcome = await programs.ask("claude", "--allow-all", "--offline")
    assert outcome.code == 2
    assert "which --offline forbids" in outcome.notes
    assert not programs.got


async def test_gemini_has_its_own_models_only(cli: Cli) -> None:
    programs = StandIns(cli)
    outcome = await programs.ask("gemini", "--allow-all", "--runtime-models", "host")
    assert outcome.code == 2
    assert "cannot use the models of Trimtab" in outcome.notes


AGENT = """---
description: does it elsewhere
runtime: {runtime}
---
You are careful.
"""


async def test_an_agents_file_names_the_runtime_that_does_its_work(cli: Cli) -> None:
    folder = cli.home / "agents"
    folder.mkdir()
    named = AGENT.replace("---\nYou", "model: opus\neffort: low\n---\nYou")
    (folder / "other.agent.md").write_text(named.format(runtime="claude"))
    programs = StandIns(cli)
    outcome = await cli.run(
        "-p", "go", "--agent", "other", "--allow-all", "--output-format", "json"
    )
    assert outcome.code == 0, outcome.notes
    (given,) = programs.got
    assert given["flags"]["--append-system-prompt"] == ["You are careful."]
    assert (given["flags"]["--model"], given["flags"]["--effort"]) == (["opus"], ["low"])


async def test_a_repositorys_agent_has_its_runtime_only_in_a_trusted_folder(cli: Cli) -> None:
    folder = cli.cwd / ".github" / "agents"
    folder.mkdir(parents=True)
    (folder / "other.agent.md").write_text(AGENT.format(runtime="claude"))
    programs = StandIns(cli)
    args = ("-p", "go", "--agent", "other", "--allow-all", "--output-format", "json")
    untrusted = await cli.run(*args)
    assert untrusted.code == 2
    assert not programs.got
    trusted = await cli.run(*args, "--trust-folder")
    assert trusted.code == 0, trusted.notes
    assert len(programs.got) == 1


async def test_a_task_is_done_by_the_runtime_of_its_agent(cli: Cli) -> None:
    folder = cli.home / "agents"
    folder.mkdir()
    (folder / "other.agent.md").write_text(AGENT.format(runtime="codex"))
    programs = StandIns(cli)
    programs.plan("I look.", MAKE, "The other one did it.")
    call = {
        "name": "task",
        "arguments": {"agent_type": "other", "prompt": "make it", "description": "make"},
    }
    async with serving([{"tools": [call]}, "Fine."]) as server:
        outcome = await cli.use(server).ask("go")
        assert outcome.code == 0, outcome.notes
        assert b"The other one did it." in server.requests[1].body
    (given,) = programs.got
    assert given["prompt"] == "<system>\nYou are careful.\n</system>\n\nmake it"
    started = [line for line in outcome.lines if line["type"] == "trimtab.runtime_started"]
    assert started[0]["agentId"]
    changed = [line for line in outcome.lines if line["type"] == "trimtab.workspace_changed"]
    assert changed[0]["agentId"] == started[0]["agentId"]
    (completed,) = outcome.of("subagent.completed")
    assert completed["totalToolCalls"] == 1


async def test_the_list_and_the_probe_have_one_shape(cli: Cli) -> None:
    StandIns(cli, "claude", "pi")
    listed = json.loads((await cli.run("runtimes", "list", "--json")).text)["runtimes"]
    fields = {"name", "found", "bin", "leadingArgs", "isNative", "version", "bestEffort"}
    assert [entry["name"] for entry in listed] == list(NAMES)
    assert all(set(entry) == {*fields, "capabilities"} for entry in listed)
    found = {entry["name"]: entry["version"] for entry in listed if entry["found"]}
    assert found == {"claude": "9.8.7", "pi": "9.8.7"}
    probed = await cli.run("runtimes", "probe", "pi", "--json")
    assert json.loads(probed.text)["runtimes"] == [
        entry for entry in listed if entry["name"] == "pi"
    ]
    missing = await cli.run("runtimes", "probe", "codex")
    assert missing.code == 2
    assert "npm install -g @openai/codex" in missing.text


async def test_the_worktree_is_where_a_runtime_works(cli: Cli) -> None:
    from gitkit import git

    git(cli.cwd, "init", "-q")
    git(cli.cwd, "commit", "-q", "--allow-empty", "-m", "start")
    programs = StandIns(cli)
    programs.plan(MAKE, "All done.")
    outcome = await programs.ask("codex", "--allow-all", "--worktree")
    assert outcome.code == 0, outcome.notes
    assert programs.got[0]["cwd"] != str(cli.cwd)
    assert not (cli.cwd / "made.txt").exists()
    assert os.path.exists(os.path.join(programs.got[0]["cwd"], "made.txt"))


@pytest.mark.proves("ADP-20")
async def test_the_probe_of_copilot_warns_of_its_built_in_servers(cli: Cli) -> None:
    StandIns(cli, "copilot")
    probed = await cli.run("runtimes", "probe", "copilot")
    assert probed.code == 0, probed.notes
    assert "open pull requests and change issues outside of this log" in probed.text


@pytest.mark.needs("bubblewrap")
async def test_a_sandbox_holds_the_whole_program_and_leaves_it_its_own_files(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan({"run": "echo in > in.txt; echo out > $HOME/out.txt; true"}, "All done.")
    temp = cli.home.parent / "tmp"
    temp.mkdir()
    cli.env["TMPDIR"] = str(temp)  # else everything in /tmp could be written
    refused = await programs.ask("codex", "--allow-all", "--sandbox")
    assert refused.code == 2
    assert "cannot reach its models from the sandbox" in refused.notes
    (cli.home / "settings.json").write_text('{"sandbox": {"network": "on"}}')
    outcome = await programs.ask("codex", "--allow-all", "--sandbox")
    assert outcome.code == 0, outcome.notes
    (changed,) = outcome.of("trimtab.workspace_changed")
    assert [path["path"] for path in changed["changes"]] == [str(cli.cwd / "in.txt")]
    (done,) = outcome.of("tool.execution_complete")
    assert "Read-only file system" in done["result"]["content"]
    assert (cli.cwd / "in.txt").exists()
    assert not (cli.home.parent / "out.txt").exists()
    assert len(programs.sessions) == 1
