"""Model calls outside the conversation, and what is recorded of them."""

import asyncio

import pytest

from loopkit import MemorySession, make_run
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.provider import Price, Request
from trimtab.loop.side_calls import SideCall, Writer, call_model
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider

CALL = SideCall(purpose="title", prompt=1_000, answer=10)
REQUEST = Request(model="small", system="s", messages=(UserMessage.of("hi"),), tools=())


async def test_the_estimate_of_an_aborted_call_is_recorded() -> None:
    run = make_run([], "go")
    provider = ScriptedProvider(Script.of([{"text": "never", "delay": 60}]))
    writer = Writer(provider=provider, model="small", price=Price(input=1.0, output=1.0))
    task = asyncio.ensure_future(call_model(run, writer, CALL, REQUEST))
    for _ in range(5):  # lets the call begin
        await asyncio.sleep(0)
    assert provider.requests
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(run.session, MemorySession)
    (recorded,) = run.session.of("trimtab.model_call")
    assert (recorded.status, recorded.estimated_tokens) == ("aborted", 1_000)


async def test_a_call_that_ended_has_no_estimate() -> None:
    run = make_run([], "go")
    writer = Writer(provider=ScriptedProvider(Script.of(["A title"])), model="small")
    reply = await call_model(run, writer, CALL, REQUEST)
    assert reply.message.text == "A title"
    assert isinstance(run.session, MemorySession)
    (recorded,) = run.session.of("trimtab.model_call")
    assert (recorded.status, recorded.estimated_tokens) == ("success", None)


async def test_the_time_of_a_call_is_recorded_in_milliseconds() -> None:
    run = make_run([], "go")
    slow = ScriptedProvider(Script.of([{"text": "A title", "delay": 0.05}]))
    await call_model(run, Writer(provider=slow, model="small"), CALL, REQUEST)
    assert isinstance(run.session, MemorySession)
    (recorded,) = run.session.of("trimtab.model_call")
    assert 50 <= recorded.duration_ms < 50_000
