"""Schedules over the official client."""

import time
from typing import Any

from copilot.generated import rpc

from sdkkit import Sdk, Talk, talking_here

DONE = {"text": "Done."}


async def ask(talk: Talk, name: str, **params: Any) -> Any:
    about = {"sessionId": talk.session.session_id}
    return await talk.client._client.request(f"session.schedule.{name}", {**about, **params})


async def test_a_prompt_is_sent_at_its_time_and_once(sdk: Sdk) -> None:
    async with talking_here(sdk, [DONE] * 2) as talk:
        made = await ask(talk, "addAt", at=1, prompt="caulk", displayPrompt="Caulk the hull")
        assert made["entry"]["id"] == 1
        await talk.heard.until("session.idle")
        (message,) = talk.heard.of("user.message")
        assert message.content == "[Scheduled prompt #1]\nCaulk the hull"
        assert message.source == "schedule-1"
        assert talk.prompt().endswith("[Scheduled prompt #1]\ncaulk")
        assert (await talk.session.rpc.schedule.list()).entries == []
        assert [data.id for data in talk.heard.of("session.schedule_cancelled")] == [1]


async def test_schedules_are_listed_stopped_and_resumed(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        await ask(talk, "add", interval="30s", prompt="look")
        await ask(talk, "addCron", cron="0 9 * * 1-5", tz="Europe/Berlin", prompt="greet")
        far = int(time.time() * 1000) + 86_400_000 * 400
        await ask(talk, "addAt", at=far, prompt="celebrate")
        entries = (await talk.session.rpc.schedule.list()).entries
        assert [entry.id for entry in entries] == [1, 2, 3]
        assert [entry.recurring for entry in entries] == [True, True, False]
        assert [entry.tz for entry in entries] == [None, "Europe/Berlin", None]
        stopped = await talk.session.rpc.schedule.stop(rpc.ScheduleStopRequest(id=1))
        assert stopped.entry is not None
        again = await talk.session.rpc.schedule.stop(rpc.ScheduleStopRequest(id=1))
        assert again.entry is None
        await talk.session.disconnect()
        session = await talk.client.resume_session(talk.session.session_id)
        entries = (await session.rpc.schedule.list()).entries
        assert [(entry.id, entry.prompt) for entry in entries] == [(2, "greet"), (3, "celebrate")]
        talk.session = session
        assert await ask(talk, "hydrate") is None
        assert (await ask(talk, "add", interval="5", prompt="x"))["entry"]["id"] == 4


async def test_a_schedule_that_cannot_be_is_answered_with_the_reason(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        for interval, reason in (("5x", "30s, 5m"), ("1s", "10s"), ("400d", "1d"), ("", "30s")):
            assert reason in (await ask(talk, "add", interval=interval, prompt="x"))["error"]
        assert "empty" in (await ask(talk, "add", interval="5m", prompt=" "))["error"]
        for cron, zone in (("bogus", None), ("0 9 * * *", "No/Such")):
            told = await ask(talk, "addCron", cron=cron, prompt="x", tz=zone)
            assert "Invalid cron expression" in told["error"]
        assert "No active schedule" in (await ask(talk, "rearmSelfPaced", id=9, at=1))["error"]
        await ask(talk, "add", interval="1d", prompt="x")
        assert "not self-paced" in (await ask(talk, "rearmSelfPaced", id=1, at=1))["error"]


async def test_a_self_paced_schedule_ends_unless_somebody_sets_it_anew(sdk: Sdk) -> None:
    far = int(time.time() * 1000) + 86_400_000
    slow = {"text": "Slow.", "delay": 0.3}
    async with talking_here(sdk, [slow, DONE, DONE]) as talk:
        await ask(talk, "addSelfPaced", prompt="watch")
        assert (await ask(talk, "hasSelfPaced"))["hasSelfPaced"]
        await talk.server.wait_for_requests(1)
        assert "error" not in await ask(talk, "rearmSelfPaced", id=1, at=far)
        await talk.heard.until("session.idle")
        assert [data.id for data in talk.heard.of("session.schedule_rearmed")] == [1]
        await ask(talk, "rearmSelfPaced", id=1, at=1)
        await talk.heard.until("session.schedule_cancelled")
        assert not (await ask(talk, "hasSelfPaced"))["hasSelfPaced"]
        assert len(talk.heard.of("user.message")) == 2
