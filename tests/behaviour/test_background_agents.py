"""Agents in the background: started, told of, read, written to, stopped, promoted, resumed."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from hookkit import keeping, kept, saying, write_hooks
from livekit import Watch, opened
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.options import Client, LimitOptions
from trimtab.contracts.tool import Assignment
from trimtab.testing import Script, ScriptedProvider
from trimtab.testing.playing import ALLOW_ALL

DONE = {"text": "All done."}


def start(prompt: str, mode: str = "background", **more: Any) -> dict[str, Any]:
    arguments = {
        "description": "a part of it",
        "prompt": prompt,
        "agent_type": "general-purpose",
        "mode": mode,
        **more,
    }
    return {"name": "task", "arguments": arguments}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def on(last: str, **step: Any) -> dict[str, Any]:
    return {"when": {"last": last}, "repeat": 1, **step}


def script(*rules: Any) -> dict[str, Any]:
    return {"replies": list(rules), "otherwise": DONE}


async def settled(live: LiveSession, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        await live.settled(seconds)


def results(watch: Watch, agent: bool = False) -> list[str]:
    done = [
        event.data
        for event in watch.events
        if event.type == "tool.execution_complete" and bool(event.agent_id) is agent
    ]
    return [(one.result or {}).get("content") or one.error["message"] for one in done]


def agent_id(watch: Watch, number: int = 0) -> str:
    started = [event for event in watch.events if event.type == "subagent.started"]
    return str(started[number].agent_id)


@pytest.mark.proves("SUB-09")
async def test_the_call_answers_at_once_and_the_end_comes_as_a_new_turn(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Count.", name="counter")]),
        on("Count", text="There are 3.", delay=0.2),
        on("works in the background", text="I wait."),
        on("There are 3", text="It is 3."),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        assert live.answer == "I wait."
        assert live.has_background_work
        (said,) = results(watch)
        assert agent_id(watch) in said
        await settled(live)
        assert live.answer == "It is 3."
    (notice,) = watch.of("system.notification")
    assert notice.kind["type"] == "agent_completed"
    assert notice.kind["agentId"] == agent_id(watch)
    assert notice.kind["status"] == "completed"
    assert "There are 3." in notice.content
    (started,) = watch.of("subagent.started")
    assert (started.execution_mode, started.task_name) == ("background", "counter")


async def test_a_caller_that_works_is_told_between_two_calls(tmp_path: Path) -> None:
    wait = bash("until [ -e told ]; do sleep 0.02; done")
    rules = script(
        on("go", tools=[start("Count.")]),
        on("works in the background", tools=[wait]),
        on("Count", text="There are 3."),
        on("There are 3", text="It is 3."),
    )
    async with opened(tmp_path, rules) as (live, watch, provider):
        live.send("go")
        await watch.saw("subagent.completed")
        (tmp_path / "told").touch()
        await settled(live)
        last = provider.requests[-1].messages
    assert len(watch.of("assistant.idle")) == 1
    assert isinstance(last[-1], UserMessage)
    assert "There are 3." in str(last[-1])
    assert last[-2].__class__.__name__ == "ToolMessage"


async def test_each_change_of_the_tasks_is_announced_once(tmp_path: Path) -> None:
    rules = script(on("go", tools=[start("Count.")]), on("Count", text="3", delay=0.1))
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await settled(live)
        assert len(watch.of("session.background_tasks_changed")) == 2
        (task,) = live.tasks.describe()
        assert (task["status"], task["result"]) == ("idle", "3")
        assert live.tasks.remove(task["id"])
        assert len(watch.of("session.background_tasks_changed")) == 3
        assert live.tasks.describe() == []


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            LimitOptions(max_tokens=1_000_000),
            r"general-purpose  1,000 of \d+k tokens  a part of it",
        ),
        (LimitOptions(), r"general-purpose  1,000 tokens  a part of it"),
    ],
)
async def test_the_list_of_tasks_says_what_each_agent_used_of_its_budget(
    tmp_path: Path, limits: LimitOptions, said: str
) -> None:
    rules = script(
        {"tools": [start("Count.")]},
        on("Count", text="3", usage={"input": 900, "output": 100}),
    )
    async with opened(tmp_path, rules, limits=limits) as (live, _, _):
        await live.ask("go")
        await settled(live)
        (task,) = live.tasks.describe()
        assert task["tokensUsed"] == 1000
        assert 0 < task.get("maxTokens", 1) < 500_000
        assert re.search(said, await live.run_command("/tasks") or "")


async def test_an_idle_agent_takes_another_turn_with_what_it_knows(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Count.", name="counter")]),
        on("Count", text="There are 3."),
        on("There are 3", tools=[call("write_agent", agent_id="counter", message="Again!")]),
        on("Again!", text="Still 3."),
        on("Still 3", tools=[call("read_agent", agent_id="counter", since_turn=1)]),
    )
    async with opened(tmp_path, rules) as (live, watch, provider):
        await live.ask("go")
        await settled(live)
        (again,) = [r for r in provider.requests if "Again!" in str(r.messages[-1])]
    assert [type(message).__name__ for message in again.messages] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    read = results(watch)[-1]
    assert "turns: 2" in read
    assert "Still 3." in read
    assert "There are 3." not in read
    assert len(watch.of("system.notification")) == 2


async def test_a_running_agent_reads_a_message_before_its_next_call(tmp_path: Path) -> None:
    wait = bash("until [ -e told ]; do sleep 0.02; done")
    rules = script(
        on("go", tools=[start("Count.")]), on("Count", tools=[wait]), on("Hurry", text="Quick 3.")
    )
    async with opened(tmp_path, rules) as (live, watch, provider):
        await live.ask("go")
        await watch.saw("tool.execution_start", 2)
        live.tasks.send(agent_id(watch), "Hurry up.")
        (tmp_path / "told").touch()
        await settled(live)
        (hurried,) = [r for r in provider.requests if "Hurry up." in str(r.messages[-1])]
    assert len(hurried.messages) == 4
    assert len(watch.of("subagent.completed")) == 1


async def test_agents_are_listed_by_scope_and_write_to_their_siblings(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("First.", name="a"), start("Second.", name="b")]),
        on("First", tools=[call("list_agents", scope="siblings")]),
        on(r"b \(general", tools=[call("write_agent", scope="siblings", message="Hello.")]),
        on("Second", text="Waiting."),
        on("Hello", text="Hello back."),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await settled(live)
        listed, sent = results(watch, agent=True)
        assert "b (general-purpose)" in listed
        assert "a (general-purpose)" not in listed
        assert sent == "Sent to 1 agent."
        answers = {r.name: r.answers for r in live.projections.agents.records.values()}
    assert answers["b"][-1] == "Hello back."


async def test_a_stopped_agent_ends_with_its_commands_and_its_caller_goes_on(
    tmp_path: Path,
) -> None:
    long = bash("touch began; sleep 300")
    left = bash("sleep 301")
    left["arguments"] |= {"mode": "async", "shellId": "left"}
    rules = script(
        on("go", tools=[start("Sleep.")]),
        on("Sleep", tools=[left, long]),
        on("was stopped by the user", text="Then without it."),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await watch.saw("tool.execution_start", 3)
        async with asyncio.timeout(50):
            assert live.tasks.stop(agent_id(watch))
            await watch.saw("subagent.completed")
            while live.has_background_work:
                await live.tasks.wait_change()
        await settled(live)
        assert live.answer == "Then without it."
        assert not live.tasks.stop(agent_id(watch))
        shells = [task for task in live.tasks.describe() if task["type"] == "shell"]
    assert [task["status"] for task in shells if task["status"] == "running"] == []
    (ended,) = watch.of("subagent.completed")
    assert ended.cancelled


async def test_the_agent_that_stops_another_is_not_told_of_it(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Sleep.", name="sleeper")]),
        on("Sleep", tools=[bash("sleep 300")]),
        on("works in the background", tools=[call("stop_agent", agent_id="sleeper")]),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await settled(live)
    assert results(watch)[-1].endswith("was stopped.")
    assert watch.of("system.notification") == []


async def test_an_agent_somebody_waits_for_is_moved_to_the_background(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Count.", mode="sync")]),
        on("Count", tools=[bash("until [ -e told ]; do sleep 0.02; done")]),
        on("continues in the background", text="I go on."),
        on("has completed", text="I know."),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        live.send("go")
        await watch.saw("tool.execution_start", 2)
        promotable = live.tasks.find_promotable()
        assert promotable is not None
        assert live.tasks.promote(promotable["id"])
        assert not live.tasks.promote(promotable["id"])
        await live.finished()
        assert live.answer == "I go on."
        (tmp_path / "told").touch()
        await settled(live)
        assert live.answer == "I know."
        (task,) = live.tasks.describe()
    assert (task["executionMode"], task["status"]) == ("background", "idle")


async def test_abort_leaves_agents_in_the_background_at_work(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Count.")]),
        on("works in the background", text="x", delay=60),
        on("Count", tools=[bash("until [ -e told ]; do sleep 0.02; done")]),
        on("has completed", text="I know."),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        live.send("go")
        await watch.saw("tool.execution_start", 2)
        await live.abort()
        (tmp_path / "told").touch()
        await watch.saw("subagent.completed")
        await settled(live)
        assert live.answer == "I know."


async def test_limits_of_the_environment_hold(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.env |= {"COPILOT_SUBAGENT_MAX_CONCURRENT": "1", "COPILOT_SUBAGENT_MAX_DEPTH": "1"}
    rules = script(
        on("go", tools=[start("Wait."), start("Other.")]), on("Wait", text="Waited.", delay=0.5)
    )
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go")
        inner = next(r.json for r in server.requests if "Wait." in str(r.json["messages"][-1]))
    assert outcome.code == 0
    refused = [d["error"]["message"] for d in outcome.of("tool.execution_complete") if "error" in d]
    assert ["No more than 1 agent may run at once" in text for text in refused] == [True]
    assert "task" not in {tool["function"]["name"] for tool in inner["tools"]}
    cli.env["COPILOT_SUBAGENT_MAX_DEPTH"] = "deep"
    async with serving(script(on("go", tools=[start("Wait.")]))) as server:
        outcome = await cli.use(server).ask("go")
    assert "set it to a whole number" in outcome.text


async def test_a_headless_run_ends_when_nobody_works_any_more(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    late = bash("sleep 0.5; touch late")
    late["arguments"] |= {"mode": "async", "shellId": "late"}
    rules = script(
        on("go", tools=[start("Count."), late]),
        on("works in the background", text="I wait."),
        on("Count", text="There are 3.", delay=0.3),
        on("There are 3", text="It is 3."),
    )
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0, outcome.notes
    assert (cli.cwd / "late").exists()
    said = [
        line["data"]["content"] for line in outcome.lines if line["type"] == "assistant.message"
    ]
    assert "It is 3." in said


async def test_agents_that_work_too_long_are_stopped_with_exit_code_3(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.env["COPILOT_TASK_WAIT_TIMEOUT_SECONDS"] = "0.5"
    rules = script(on("go", tools=[start("Sleep.")]), on("Sleep", tools=[bash("sleep 300")]))
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 3
    assert outcome.result["stopReason"] == "background_timeout"
    assert outcome.of("subagent.completed")[0]["cancelled"]


async def test_commands_that_run_too_long_are_stopped_with_a_warning(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.env["COPILOT_TASK_WAIT_TIMEOUT_SECONDS"] = "0.5"
    server_command = bash("sleep 300")
    server_command["arguments"] |= {"mode": "async", "shellId": "serve"}
    async with serving(script(on("go", tools=[server_command]))) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0
    (warning,) = outcome.of("session.warning")
    assert warning["warningType"] == "background_commands"
    assert "serve" in warning["message"]


async def test_a_bad_waiting_time_is_told(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.env["COPILOT_TASK_WAIT_TIMEOUT_SECONDS"] = "soon"
    async with serving(script()) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 2
    assert "set it to a number of seconds" in outcome.result["error"]["message"]


async def test_after_a_kill_agents_are_interrupted_and_go_on_when_written_to(
    tmp_path: Path,
) -> None:
    cli = Cli(tmp_path)
    sleeper = bash("sleep 300")
    rules = script(
        on("go", tools=[start("Sleep.", name="sleeper")]),
        on("Sleep", tools=[sleeper]),
        on("again", tools=[call("list_agents")]),
        on("interrupted;", tools=[call("write_agent", agent_id="sleeper", message="Wake up.")]),
        on("Wake up", text="I am awake."),
    )
    async with serving(rules) as server:
        cli.use(server)
        process = await cli.start("-p", "go", "--output-format", "json", "--allow-all")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            async for line in process.stdout:
                if b"tool.execution_start" in line and b'"agentId"' in line:
                    break
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        (log,) = cli.logs()
        outcome = await cli.ask("again", "--resume", log.parent.name)
        awake = next(r.json for r in server.requests if "Wake up" in str(r.json["messages"][-1]))
    assert outcome.code == 0, outcome.notes
    assert "Sleep." in str(awake["messages"][1])
    assert "interrupted" in str(awake["messages"][3])
    assert len(outcome.of("subagent.started")) == 1
    (changed,) = [json.loads(x) for x in log.read_text().splitlines() if "agent_changed" in x]
    assert changed["data"]["change"] == "interrupted"
    (notice,) = outcome.of("system.notification")
    assert "I am awake." in notice["content"]


async def test_after_a_kill_no_command_of_an_agent_lives_on(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    rules = script(
        on("go", tools=[start("Sleep.")]),
        on("Sleep", tools=[bash("echo pid $$; exec sleep 300")]),
    )
    async with serving(rules) as server:
        process = await cli.use(server).start("-p", "go", "--output-format", "json", "--allow-all")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            async for line in process.stdout:
                if found := re.search(rb"pid (\d+)", line):
                    break
        watched = os.pidfd_open(int(found[1])) if found else -1
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(watched, gone.set)
        async with asyncio.timeout(50):
            await gone.wait()
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


async def test_one_ledger_holds_for_all_agents_in_the_background(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 100}
    look = {"tools": [call("glob", pattern="*")], "usage": usage}
    rules = {
        "replies": [
            on("go", tools=[start(f"Look {n}.") for n in range(6)], usage=usage),
            {"when": {"last": "Look"}, **look},
            {"when": {"last": "No files|project"}, **look},
        ],
        "otherwise": {**look},
    }
    limits = LimitOptions(max_tokens=20_000, max_repeats=0)
    async with opened(tmp_path, rules, limits=limits) as (live, _, provider):
        await live.ask("go")
        await settled(live)
        spent = live.projections.usage.total
        total = (spent.input_tokens or 0) + (spent.output_tokens or 0)
    assert total <= 20_000 + 1100
    assert len(provider.requests) * 1100 <= 20_000 + 1100


async def test_agents_that_write_to_each_other_without_end_are_bounded(tmp_path: Path) -> None:
    settings = tmp_path / "home" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"subagents": {"maxMessages": 20, "maxAgents": 10}}))
    ping = call("write_agent", scope="siblings", message="ping")
    rules = {
        "replies": [
            on("go", tools=[start(f"Agent {n}.") for n in range(3)]),
            {"when": {"last": "Agent|ping"}, "tools": [ping]},
            {"when": {"last": "which is the limit"}, "text": "Enough."},
        ],
        "otherwise": {"text": "Noted."},
    }
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await settled(live)
        assert sum("Message from" in (d.content or "") for d in watch.of("user.message")) <= 20
    assert any("20 messages were sent" in text for text in results(watch, agent=True))


async def test_agents_fan_out_no_further_than_the_limit(tmp_path: Path) -> None:
    settings = tmp_path / "home" / "settings.json"
    settings.parent.mkdir(parents=True)
    limits = {"maxConcurrency": 300, "maxAgents": 200, "maxDepth": 9}
    settings.write_text(json.dumps({"subagents": limits}))
    fan = [start(f"Fan {n}.") for n in range(8)]
    rules = {
        "replies": [{"when": {"last": "go|Fan"}, "tools": fan}],
        "otherwise": {"text": "Enough."},
    }
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        await settled(live, 300)
    assert len(watch.of("subagent.started")) <= 200 + len(watch.of("system.notification"))
    assert len({e.agent_id for e in watch.events if e.type == "subagent.started"}) == 200


async def test_a_client_starts_an_agent_in_the_background(tmp_path: Path) -> None:
    rules = script(on("Count", text="There are 3."), on("There are 3", text="It is 3."))
    async with opened(tmp_path, rules) as (live, watch, _):
        task = Assignment(agent_type="explore", prompt="Count.", name="c", background=True)
        started = await live.tasks.start_agent(task)
        await settled(live)
        assert live.answer == "It is 3."
        assert live.tasks.find(started) is not None
        progress = live.tasks.progress(started)
        assert progress is not None
        assert progress["recentActivity"][0]["message"] == "There are 3."
    assert watch.of("subagent.started")[0].agent_name == "explore"


async def test_rewinding_waits_for_agents_and_then_forgets_what_they_knew(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Count.", name="c")]),
        on("Count", tools=[bash("until [ -e told ]; do sleep 0.02; done")]),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        first = next(event for event in watch.events if event.type == "user.message")
        with pytest.raises(Exception, match="Agents are working in the background"):
            live.truncate(first.id)
        (tmp_path / "told").touch()
        await settled(live)
        live.truncate(first.id)
        assert live.tasks.describe() == []


async def test_a_closed_session_leaves_no_process_of_an_agent(tmp_path: Path) -> None:
    rules = script(
        on("go", tools=[start("Sleep.")]),
        on("Sleep", tools=[bash("echo $$; exec sleep 300")]),
    )
    async with opened(tmp_path, rules) as (live, watch, _):
        await live.ask("go")
        printed = await watch.saw("tool.execution_partial_result")
        pid = int(printed.data.partial_output)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert watch.of("subagent.completed")[0].cancelled


async def test_undo_takes_back_what_an_agent_in_the_background_wrote(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("before\n")
    rules = script(
        on("go", tools=[start("Write.")]), on("Write", tools=[bash("echo after > a.txt")])
    )
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go")
    assert (cli.cwd / "a.txt").read_text() == "after\n"
    undone = await cli.run("undo", outcome.result["sessionId"])
    assert undone.code == 0, undone.notes
    assert (cli.cwd / "a.txt").read_text() == "before\n"


async def test_rules_hold_for_agents_in_the_background(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    rules = script(on("go", tools=[start("Touch.")]), on("Touch", tools=[bash("touch made")]))
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go", "--deny-tool", "shell(touch)")
    assert not (cli.cwd / "made").exists()
    errors = [d["error"]["message"] for d in outcome.of("tool.execution_complete") if "error" in d]
    assert any("shell(touch)" in text for text in errors)


async def test_a_message_nobody_read_before_a_kill_is_read_when_the_agent_goes_on(
    tmp_path: Path,
) -> None:
    """The message was acknowledged, so it must not be lost."""
    env = {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    rules = script(on("go", tools=[start("Sleep.", name="s")]), on("Sleep", text="x", delay=60))
    watch = Watch()
    options = SessionOptions(cwd=str(tmp_path), permissions=ALLOW_ALL)
    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of(rules)))
    live = await runtime.create(options, Client(on_event=watch.on_event))
    await live.ask("go")
    await watch.saw("subagent.configured")
    live.tasks.send(agent_id(watch), "First message.")
    log = live.folder.events
    copied = Path(log).read_bytes()
    await live.close()
    Path(log).write_bytes(copied)  # as a kill would have left it
    again = Watch()
    provider = ScriptedProvider(Script.of(script(on("First message", text="Read both."))))
    runtime = Runtime(env=env, provider=provider)
    live = await runtime.resume(live.id, options, Client(on_event=again.on_event))
    try:
        (task,) = live.tasks.describe()
        assert task["interrupted"]
        assert not live.has_background_work
        live.tasks.send(task["id"], "Second message.")
        await settled(live)
        said = [d.content for d in again.of("user.message")]
        assert said[:2] == ["First message.", "Second message."]
    finally:
        await live.close()


def test_names_of_states_are_those_of_the_guide() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "sub-agents.md").read_text()
    for state in ("running", "idle", "completed", "failed", "cancelled", "interrupted"):
        assert re.search(rf"`{state}`", page), state


async def test_hooks_decide_about_calls_of_agents_in_the_background(cli: Cli) -> None:
    hooks = {
        "preToolUse": [{**saying({"permissionDecision": "deny"}), "matcher": "bash"}],
        "subagentStop": [keeping("stopped")],
    }
    write_hooks(cli, hooks, "user")
    rules = script(
        on("go", tools=[start("Count.", name="counter")]),
        on("Count", tools=[bash("touch made")]),
        on("Denied by preToolUse", text="It was denied."),
    )
    async with serving(rules) as server:
        outcome = await cli.use(server).ask("go")
    assert not (cli.cwd / "made").exists()
    denied = [data for data in outcome.of("tool.execution_complete") if not data["success"]]
    assert ["Denied by preToolUse" in data["error"]["message"] for data in denied] == [True]
    assert kept(cli, "stopped")["agentName"] == "general-purpose"
