"""Model calls outside the conversation, and what is recorded of them."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest

from loopkit import MemorySession, change_agent, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import AssistantMessage, UserMessage
from trimtab.contracts.provider import Delta, Price, Reply, Request, TextDelta
from trimtab.loop.ledger import Allowance, Ledger, Spending
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


@pytest.mark.parametrize(("known", "recorded"), [("small-2026", "small-2026"), (None, "small")])
async def test_the_record_names_the_model_that_answered(known: str | None, recorded: str) -> None:
    class Service:
        name = "service"

        def __init__(self) -> None:
            self.requests: list[Request] = []

        async def stream(self, request: Request) -> AsyncGenerator[Reply]:
            self.requests.append(request)
            yield Reply(message=AssistantMessage(text="A title"), model=known)

        async def aclose(self) -> None:
            """Do nothing: there is no connection."""

    run, service = make_run([]), Service()
    run.interaction_id = "i1"
    request = msgspec.structs.replace(REQUEST, headers={"x-trace": "t"})
    await call_model(run, Writer(provider=service, model="small"), CALL, request)
    assert service.requests[0].headers == {
        "x-initiator": "agent",
        "x-interaction-id": "i1",
        "x-trace": "t",
    }
    assert isinstance(run.session, MemorySession)
    (call,) = run.session.of("trimtab.model_call")
    assert (call.model, call.requested_model, call.attempt) == (recorded, "small", 0)


async def test_a_call_outside_of_an_interaction_has_an_id_of_its_own() -> None:
    run, provider = make_run([]), ScriptedProvider(Script.of(["A title"]))
    await call_model(run, Writer(provider=provider, model="small"), CALL, REQUEST)
    assert provider.requests[0].headers["x-interaction-id"]


async def test_a_call_that_the_budget_does_not_cover_is_not_made() -> None:
    run, provider = make_run([]), ScriptedProvider(Script.of(["never"]))
    change_agent(run, budget=Ledger(Allowance(tokens=10), Spending))
    with pytest.raises(ModelError, match="too small for a title call") as failed:
        await call_model(run, Writer(provider=provider, model="small"), CALL, REQUEST)
    assert failed.value.category == "budget"
    assert provider.requests == []


async def test_a_stream_that_ends_too_early_is_a_failed_call() -> None:
    class Broken:
        name = "broken"

        async def stream(self, request: Request) -> AsyncGenerator[Delta]:
            yield TextDelta("half")

        async def aclose(self) -> None:
            """Do nothing: there is no connection."""

    run = make_run([])
    with pytest.raises(ModelError, match="closed the stream") as failed:
        await call_model(run, Writer(provider=Broken(), model="small"), CALL, REQUEST)
    assert failed.value.category == "transport"
    assert isinstance(run.session, MemorySession)
    (call,) = run.session.of("trimtab.model_call")
    assert (call.status, call.estimated_tokens) == ("error", None)
