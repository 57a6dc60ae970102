"""`/every` and `/after`: prompts that a person has sent later."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from livekit import Watch
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.schedule import SessionScheduleCreated
from trimtab.contracts.options import Client
from trimtab.host.opened import schedule
from trimtab.host.resumed_schedules import restore_schedules
from trimtab.host.schedules import schedules_of
from trimtab.testing import Script, ScriptedProvider


@asynccontextmanager
async def talking(
    folder: Path, session_id: str | None = None, *, attended: bool = True
) -> AsyncIterator[tuple[LiveSession, Watch]]:
    watch = Watch()
    env = {"COPILOT_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    runtime = Runtime(env=env, provider=ScriptedProvider(Script.of(["Done."])))
    options = SessionOptions(cwd=str(folder))
    client = Client(on_event=watch.on_event, attended=attended)
    if session_id is None:
        live = await runtime.create(options, client)
    else:
        live = await runtime.resume(session_id, options, client)
    live.schedule = schedule
    try:
        yield live, watch
    finally:
        await live.close()


async def test_schedules_are_begun_listed_stopped_and_taken_up_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as (live, watch):
        assert "Nothing is scheduled" in (await live.run_command("/every") or "")
        made = await live.run_command("/every 10m run the tests") or ""
        assert made.startswith("Scheduled #1 (every 10m, next at ")
        assert made.endswith("): run the tests")
        assert "#2 (next at " in (await live.run_command("/after 2h say good night") or "")
        assert await live.run_command("/loop stop 1") == "Stopped #1."
        assert [plan.prompt for plan in watch.of("session.schedule_created")] == [
            "run the tests",
            "say good night",
        ]
        session_id = live.id
        await live.ask("hello")
    async with talking(tmp_path, session_id) as (live, _):
        restore_schedules(live)
        listed = await live.run_command("/every") or ""
        assert listed.startswith("#2 (next at ")
        assert listed.endswith("): say good night")


async def test_a_prompt_is_sent_when_its_time_has_come(tmp_path: Path) -> None:
    async with talking(tmp_path) as (live, watch):
        schedules_of(live).add(SessionScheduleCreated(id=0, prompt="now", at=1))
        await watch.saw("session.idle")
        (sent,) = watch.of("user.message")
        assert (sent.content, sent.source) == ("[Scheduled prompt #1]\nnow", "schedule-1")
        assert schedules_of(live).list() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/every 10m", "There is no prompt to send"),
        ("/after soon go", "Invalid interval 'soon'; write 30s"),
        ("/every 1s go", "is not between 10s and 1d"),
        ("/every stop 7", "There is no schedule '7'; /every lists them"),
        ("/every stop all", "There is no schedule 'all'"),
    ],
)
async def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    async with talking(tmp_path) as (live, _):
        with pytest.raises(UsageError, match=said):
            await live.run_command(text)


async def test_nothing_is_scheduled_where_nobody_is(tmp_path: Path) -> None:
    async with talking(tmp_path, attended=False) as (live, _):
        with pytest.raises(UsageError, match="works in a conversation"):
            await live.run_command("/every 10m go")
