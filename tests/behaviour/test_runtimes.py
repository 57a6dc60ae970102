"""Runtimes in live sessions: people who are asked, several prompts, and what ends with them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli
from githubkit import TOKEN, GitHub
from livekit import Watch
from runtimekit import StandIns
from toolkit import is_running, until
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.messages import ToolMessage
from trimtab.contracts.options import Client, PermissionOptions
from trimtab.contracts.permission import Answer, Ask
from trimtab.contracts.provider import AnswerSchema
from trimtab.contracts.run import Prompt
from trimtab.runtimes.binaries import Binaries
from trimtab.runtimes.models import list_models
from trimtab.runtimes.table import load_runtime
from trimtab.testing import Script, ScriptedProvider
from trimtab.testing.playing import ALLOW_ALL
from trimtab.undo.rewind import list_points

MAKE = {"run": "printf hello > made.txt; cat made.txt"}


@asynccontextmanager
async def opened(
    cli: Cli, runtime: str | None, ask: Ask | None = None, **options: Any
) -> AsyncIterator[tuple[LiveSession, Watch]]:
    provider = ScriptedProvider(Script.of({"otherwise": "Ours."})) if runtime is None else None
    watch = Watch()
    given = {"cwd": str(cli.cwd), "runtime": runtime, "permissions": ALLOW_ALL, **options}
    opening = Runtime(env=cli.env, provider=provider)
    live = await opening.create(
        SessionOptions(**given), Client(on_event=watch.on_event, ask=ask, attended=True)
    )
    try:
        yield live, watch
    finally:
        await live.close()


@pytest.mark.proves("AMSES-01")
@pytest.mark.parametrize(
    ("runtime", "answer"), [(None, "Ours."), ("claude", "Theirs."), ("copilot", "Theirs.")]
)
async def test_a_prompt_with_its_context_reaches_whoever_answers_in_the_session(
    cli: Cli, runtime: str | None, answer: str
) -> None:
    programs = StandIns(cli)
    programs.plan("Theirs.")
    attached = {"type": "file", "path": str(cli.cwd / "a.txt"), "displayName": "a.txt"}
    (cli.cwd / "a.txt").write_text("one\n")
    async with opened(cli, runtime) as (live, watch):
        stop = await live.ask(Prompt(text="look at it", attachments=(attached,)))
        assert stop.reason == "end_turn", stop
        assert live.answer == answer
        (asked,) = watch.of("user.message")
        ids = {message.interaction_id for message in watch.of("assistant.message")}
        assert ids == {asked.interaction_id}
    if runtime is not None:
        (given,) = programs.got
        assert given["prompt"] == asked.transformed_content
        assert str(cli.cwd / "a.txt") in given["prompt"]


async def test_a_person_is_asked_about_a_call_of_a_runtime(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan(MAKE, "All done.")
    asked: list[JsonObject] = []

    async def approve(request_id: str, request: JsonObject) -> Answer:
        asked.append(request)
        assert not (cli.cwd / "made.txt").exists()
        return Answer(kind="approve-once")

    async with opened(cli, "claude", approve, permissions=PermissionOptions()) as (live, _):
        stop = await live.ask("go")
        assert stop.exit_code == 0, stop
    (request,) = asked
    assert (request["kind"], request["fullCommandText"]) == ("shell", MAKE["run"])
    assert (cli.cwd / "made.txt").read_text() == "hello"


async def test_a_call_that_a_person_rejects_ends_the_run_and_the_program(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan(MAKE, "Never said.", hang=True)

    async def reject(request_id: str, request: JsonObject) -> Answer:
        return Answer(kind="reject", feedback="not like that")

    async with opened(cli, "claude", reject, permissions=PermissionOptions()) as (live, _):
        stop = await live.ask("go")
        assert stop.reason == "rejected"
        assert not is_running(programs.got[0]["pid"])
        assert not (cli.cwd / "made.txt").exists()


async def test_prompts_follow_each_other_in_one_session_of_the_runtime(cli: Cli) -> None:
    programs = StandIns(cli)
    async with opened(cli, "codex") as (live, watch):
        live.send("first")
        live.send("second")
        await live.finished()
        await live.ask("third")
        first, second, third = watch.of("trimtab.runtime_started")
    (session,) = watch.of("trimtab.runtime_session")
    assert first.resumed is None
    assert second.resumed == third.resumed == session.session_id
    assert [given["prompt"].split()[-1] for given in programs.got] == ["first", "second", "third"]


async def test_a_runtime_is_told_what_others_said_before(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan("I look.", MAKE, "It is done.")
    async with opened(cli, "codex") as (live, _):
        await live.ask("first")
        session = live.id
    programs.plan("Fine.")
    watch = Watch()
    for runtime in ("pi", "pi", "codex"):
        options = SessionOptions(cwd=str(cli.cwd), runtime=runtime, permissions=ALLOW_ALL)
        client = Client(on_event=watch.on_event)
        resumed = await Runtime(env=cli.env).resume(session, options, client)
        await resumed.ask("and now?")
        await resumed.close()
    started = watch.of("trimtab.runtime_started")
    assert [event.handed_over for event in started] == [5, None, 9]
    assert [event.resumed is not None for event in started] == [False, True, False]
    told = [given["prompt"] for given in programs.got if "earlier_conv" in given["prompt"]]
    assert len(told) == 2
    assert all("It is done." in text and "Result of bash: hello" in text for text in told)
    assert all(text.endswith("and now?") for text in told)


async def test_after_a_rewind_a_runtime_begins_anew_with_what_is_left(cli: Cli) -> None:
    programs = StandIns(cli)
    async with opened(cli, "pi") as (live, watch):
        await live.ask("first")
        programs.plan("A wrong answer.")
        await live.ask("second")
        points = list_points(live.folder.events)
        live.rewind(points[-1], "conversation")
        programs.plan("Better.")
        await live.ask("another second")
    last = watch.of("trimtab.runtime_started")[-1]
    assert (last.resumed, last.handed_over) == (None, 2)
    prompt = programs.got[-1]["prompt"]
    assert "first" in prompt
    assert "A wrong answer." not in prompt


async def test_an_aborted_runtime_is_gone_at_once_and_the_next_prompt_works(cli: Cli) -> None:
    programs = StandIns(cli)
    programs.plan("I begin.", {"run": "touch begun; sleep 300"})
    async with opened(cli, "pi") as (live, watch):
        live.send("go")
        await until((cli.cwd / "begun").exists)
        started = asyncio.get_running_loop().time()
        await live.abort()
        assert asyncio.get_running_loop().time() - started < 5
        assert not is_running(programs.got[0]["pid"])
        (done,) = watch.of("tool.execution_complete")
        assert done.error["code"] == "interrupted"
        programs.plan("Again.")
        assert (await live.ask("again")).exit_code == 0
        assert live.answer == "Again."


@pytest.mark.proves("AMSES-10")
async def test_what_is_attached_to_a_session_ends_with_it_once_and_after_its_last_event(
    cli: Cli,
) -> None:
    StandIns(cli)
    ended: list[str] = []
    async with opened(cli, "claude") as (live, watch):
        live.on_close(lambda: ended.append(f"one {watch.events[-1].type}"))
        live.on_close(lambda: ended.append(f"two {watch.events[-1].type}"))
        await live.ask("go")
        assert ended == []
        await live.close()
    assert ended == ["one session.shutdown", "two session.shutdown"]


@pytest.mark.proves("ADP-11")
async def test_a_short_name_of_a_model_is_passed_on_with_one_warning(cli: Cli) -> None:
    programs = StandIns(cli)
    async with opened(cli, "copilot", model="sonnet") as (live, watch):
        await live.ask("one")
        await live.ask("two")
    warned = [event.message for event in watch.of("session.warning")]
    assert len([text for text in warned if "no short names for models" in text]) == 1
    assert programs.got[0]["flags"]["--model"] == ["sonnet"]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("runtime", ["claude", "codex"])
async def test_images_reach_a_runtime_that_takes_them_and_are_told_otherwise(
    cli: Cli, runtime: str
) -> None:
    programs = StandIns(cli)
    image = {"type": "blob", "mimeType": "image/png", "data": PIXEL, "displayName": "a.png"}
    async with opened(cli, runtime) as (live, watch):
        await live.ask(Prompt(text="look", attachments=(image,)))
    (given,) = programs.got
    warned = any("takes no images" in event.message for event in watch.of("session.warning"))
    if runtime == "claude":
        assert given["prompt"][0]["source"]["data"] == PIXEL
        assert not warned
    else:
        assert warned


async def test_a_runtime_cannot_be_kept_to_a_schema_of_the_answer(cli: Cli) -> None:
    programs = StandIns(cli)
    schema = AnswerSchema(name="answer", schema={"type": "object"})
    async with opened(cli, "claude") as (live, _):
        stop = await live.ask(Prompt(text="go", answer_schema=schema))
    assert stop.exit_code == 2
    assert "schema" in stop.message
    assert not programs.got


async def test_claude_knows_short_names(cli: Cli) -> None:
    programs = StandIns(cli)
    async with opened(cli, "claude", model="sonnet") as (live, watch):
        await live.ask("one")
    assert not watch.of("session.warning")
    assert programs.got[0]["flags"]["--model"] == ["sonnet"]


async def test_calls_of_a_runtime_that_run_in_parallel_stay_a_conversation(cli: Cli) -> None:
    programs = StandIns(cli)
    item = {"type": "command_execution", "command": "bash -lc ls", "status": "in_progress"}
    done = {**item, "aggregated_output": "ok", "exit_code": 0, "status": "completed"}
    lines = [
        ("item.started", {"id": "item_7", **item}),
        ("item.started", {"id": "item_8", **item}),
        ("item.completed", {"id": "item_8", **done}),
        ("item.completed", {"id": "item_7", **done}),
    ]
    raw = [{"raw": json.dumps({"type": kind, "item": part})} for kind, part in lines]
    programs.plan(*raw, "All done.")
    async with opened(cli, "codex") as (live, watch):
        await live.ask("go")
        messages = live.projections.conversation.messages
        results = [message for message in messages if isinstance(message, ToolMessage)]
    assert [(result.text, result.failed) for result in results] == [("ok", False)] * 2
    assert len(watch.of("tool.execution_complete")) == 2


@pytest.mark.proves("ADP-16")
async def test_copilots_models_come_from_its_service_or_are_none(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    StandIns(cli)
    runtime = load_runtime("copilot")
    async with GitHub(Script.of([])) as server:
        env = {**cli.env, "COPILOT_DEBUG_GITHUB_API_URL": server.url, "GH_TOKEN": TOKEN}
        binaries = Binaries(Runtime(env=env).home, env)
        binary = await binaries.require(runtime)
        models = await list_models(binaries, runtime, binary)
        assert models
        assert (cli.home / "cache/runtimes/copilot-models.json").exists()
    assert await list_models(binaries, runtime, binary) is None
    lonely = Binaries(Runtime(env=cli.env).home, {**cli.env, "TRIMTAB_NO_LOGIN": "1"})
    assert await list_models(lonely, runtime, binary) is None
