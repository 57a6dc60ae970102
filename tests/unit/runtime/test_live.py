"""A running session: sending, steering, aborting in every state, closing."""

import asyncio
import gc
import json
import os
import weakref
from pathlib import Path
from typing import Any

import pytest

from clikit import bash
from livekit import STATES, Watch, opened
from trimtab import Event, Prompt, Runtime, SessionOptions
from trimtab.contracts.messages import ToolMessage
from trimtab.contracts.options import Client, LimitOptions, PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.testing import Script, ScriptedProvider


@pytest.mark.proves("OUTER-03", "AMSES-04")
@pytest.mark.parametrize("state", STATES)
async def test_abort_takes_effect_at_once_in_every_state_and_loses_no_text(
    tmp_path: Path, state: str
) -> None:
    replies, event, options = STATES[state]
    async with opened(tmp_path, replies, **options) as (live, watch, _):
        live.send("first")
        live.send("second, typed while it works")
        await watch.saw(event)
        async with asyncio.timeout(50):  # `make scorecard` measures it: 200 ms
            await live.abort()
        assert not live.busy
        assert watch.of("abort")[0].reason == "user_initiated"
        assert watch.of("session.idle")[-1].aborted
        assert [p.text for p in live.inbox.pending] == ["second, typed while it works"]
        assert len(watch.of("tool.execution_complete")) == len(watch.of("tool.execution_start"))
        assert len(watch.of("assistant.turn_end")) == len(watch.of("assistant.turn_start"))


async def test_what_follows_an_abort_does_not_count_as_cancelled(tmp_path: Path) -> None:
    """Time limits of hooks at the end would not hold otherwise, before Python 3.11.3."""
    seen: list[int] = []

    def note(event: Event, line: bytes) -> None:
        task = asyncio.current_task()
        if event.type == "session.idle" and task is not None:
            seen.append(task.cancelling())

    async with opened(tmp_path, [{"text": "x", "delay": 60}]) as (live, watch, _):
        live.subscribe(note)
        live.send("go")
        await watch.saw("model.call_start")
        await live.abort()
    assert seen == [0]


async def test_after_an_abort_the_session_goes_on_with_what_was_queued(tmp_path: Path) -> None:
    async with opened(
        tmp_path, [{"text": "x", "delay": 60}, {"text": "two"}, {"text": "three"}]
    ) as (live, watch, _):
        live.send("first")
        live.send("second")
        await watch.saw("model.call_start")
        await live.abort()
        stop = await live.ask("third")
        assert stop.reason == "end_turn"
        assert [m.content for m in watch.of("user.message")] == ["first", "second", "third"]
        assert [m.content for m in watch.of("assistant.message")] == ["two", "three"]


@pytest.mark.proves("VSC-17")
async def test_a_prompt_sent_while_busy_steers_or_waits_as_asked(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    replies = [{"tools": [bash(f"cat {gate}")]}, {"text": "steered"}, {"text": "queued"}]
    async with opened(tmp_path, replies) as (live, watch, provider):
        live.send("go")
        await watch.saw("tool.execution_start")
        live.send(Prompt(text="later"))
        live.send(Prompt(text="use tabs", mode="immediate"))
        await asyncio.to_thread(gate.write_text, "open")
        await live.finished()
        messages = watch.of("user.message")
        assert [(m.content, m.delivery) for m in messages] == [
            ("go", "idle"),
            ("use tabs", "steering"),
            ("later", "queued"),
        ]
        assert "use tabs" in provider.requests[1].messages[-1].parts[0].text  # type: ignore[union-attr]


async def test_queued_prompts_survive_the_process_and_wait_to_be_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"text": "x", "delay": 60}]) as (live, watch, _):
        live.send("first")
        live.send("second")
        await watch.saw("model.call_start")
        session_id = live.id
    provider = ScriptedProvider(Script.of([{"text": "new"}, {"text": "old"}]))
    runtime = Runtime(
        env={"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}, provider=provider
    )
    watch = Watch()
    live = await runtime.resume(
        session_id, SessionOptions(cwd=str(tmp_path)), Client(on_event=watch.on_event)
    )
    assert watch.of("session.warning")[0].warning_type == "prompts_held"
    await live.ask("third")
    assert [m.content for m in watch.of("user.message")] == ["third"]
    live.inbox.release(prompt.message_id for prompt in live.inbox.held)
    assert [p.text for p in live.inbox.pending] == ["second"]
    await live.close()


async def test_a_withdrawn_prompt_is_never_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"text": "one", "delay": 0.05}, {"text": "never"}]) as (
        live,
        _,
        provider,
    ):
        live.send("first")
        unwanted = live.send("second")
        assert live.inbox.withdraw(unwanted)
        assert not live.inbox.withdraw(unwanted)
        await live.finished()
        assert len(provider.requests) == 1


async def test_the_deadline_ends_a_run_in_any_state(tmp_path: Path) -> None:
    async with opened(
        tmp_path, [{"text": "x", "delay": 60}], limits=LimitOptions(deadline=0.2)
    ) as (live, watch, _):
        stop = await live.ask("go")
        assert (stop.reason, stop.exit_code) == ("deadline", 6)
        assert watch.of("session.warning")[0].warning_type == "deadline"


@pytest.mark.proves("VSC-41")
async def test_a_closed_session_keeps_no_subscriber(tmp_path: Path) -> None:
    class Listener:
        def __call__(self, event: Event, line: bytes) -> None:
            pass

    listener = Listener()
    kept = weakref.ref(listener)
    async with opened(tmp_path, [{"text": "one"}]) as (live, _, _):
        leave = live.subscribe(listener)
        await live.ask("first")
    del leave, listener
    gc.collect()
    assert kept() is None, "the session let go of it, although nobody unsubscribed"


@pytest.mark.proves("VSC-41")
async def test_a_listener_leaves_when_it_wants_and_once_more_after_the_end(tmp_path: Path) -> None:
    heard: list[str] = []
    async with opened(tmp_path, [{"text": "one"}, {"text": "two"}]) as (live, _, _):
        leave = live.subscribe(lambda event, _line: heard.append(event.type))
        await live.ask("first")
        leave()
        before = len(heard)
        await live.ask("second")
    leave()
    assert 0 < before == len(heard)


@pytest.mark.proves("OUTER-01")
async def test_every_queued_prompt_is_sent_with_the_prompt_and_tools_of_its_session(
    tmp_path: Path,
) -> None:
    replies = [{"text": "one"}, {"text": "two"}]
    async with opened(tmp_path, replies) as (live, _, provider):
        live.send("first")
        live.send("second")
        await live.finished()
        one, two = provider.requests
    assert one.system
    assert (one.system, one.tools) == (two.system, two.tools)
    assert {"bash", "view", "edit"} <= {tool.name for tool in one.tools}
    assert "first" in str(one.messages)
    assert "second" not in str(one.messages)
    assert "second" in str(two.messages[-1])


@pytest.mark.proves("OUTER-07")
async def test_the_hook_at_the_end_is_not_called_for_an_aborted_run(tmp_path: Path) -> None:
    hooks = tmp_path / "home" / "hooks"
    hooks.mkdir(parents=True)
    stop = [{"type": "command", "bash": f"touch {tmp_path}/asked"}]
    (hooks / "hooks.json").write_text(json.dumps({"version": 1, "hooks": {"agentStop": stop}}))
    replies = [{"tools": [bash("sleep 60")]}, {"text": "done"}]
    async with opened(tmp_path, replies) as (live, watch, _):
        live.send("go")
        await watch.saw("tool.execution_start")
        await live.abort()
        assert not (tmp_path / "asked").exists()
        await live.ask("again")
        assert (tmp_path / "asked").exists()


async def test_a_subscriber_hears_nothing_after_it_left(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"text": "one"}, {"text": "two"}]) as (live, _, _):
        heard: list[str] = []
        leave = live.subscribe(lambda event, _: heard.append(event.type))
        await live.ask("first")
        count = len(heard)
        assert count
        leave()
        await live.ask("second")
        assert len(heard) == count


async def test_a_rejection_ends_the_turn_and_its_words_reach_the_model_next_time(
    tmp_path: Path,
) -> None:
    async def refuse(request_id: str, request: Any) -> Answer:
        return Answer(kind="reject", feedback="use the staging database")

    replies = [{"tools": [bash("deploy")]}, {"text": "I will."}]
    async with opened(tmp_path, replies, refuse, permissions=PermissionOptions()) as (
        live,
        watch,
        provider,
    ):
        stop = await live.ask("deploy it")
        assert stop.reason == "rejected"
        assert watch.of("permission.completed")[0].result["kind"] == "denied-interactively-by-user"
        await live.ask("go on")
        told = [m.text for m in provider.requests[-1].messages if isinstance(m, ToolMessage)]
        assert "use the staging database" in told[0]


@pytest.mark.proves("AMSES-05")
async def test_closing_records_what_was_spent_and_releases_the_session(tmp_path: Path) -> None:
    async with opened(tmp_path, [{"text": "one", "usage": {"input": 10, "output": 2}}]) as (
        live,
        watch,
        _,
    ):
        await live.ask("first")
    shutdown = watch.of("session.shutdown")[0]
    assert shutdown.shutdown_type == "routine"
    assert shutdown.model_metrics["scripted"]["usage"]["inputTokens"] == 10
    provider = ScriptedProvider(Script.of([{"text": "again"}]))
    runtime = Runtime(
        env={"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}, provider=provider
    )
    again = await runtime.resume(live.id, SessionOptions(cwd=str(tmp_path)))
    await again.close()
