"""A prompt cache that broke is told of, with its cause."""

from typing import Any

import pytest

from loopkit import EchoTool, MemorySession, call, drained, make_run
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.provider import Request, ToolSpec, Usage
from trimtab.loop.cache import watch_cache


def tool(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object"})


def request(*words: str, system: str = "s", tools: Any = (), model: str = "m") -> Request:
    messages = tuple(UserMessage.of(word) for word in words)
    return Request(model=model, system=system, messages=messages, tools=tuple(tools))


USED = Usage(input_tokens=10_000, output_tokens=1, cache_read_tokens=9_000)
LOST = Usage(input_tokens=10_100, output_tokens=1, cache_read_tokens=0)

CAUSES: list[tuple[str, Request, Request]] = [
    ("model_changed", request("a"), request("a", "b", model="n")),
    ("tools_changed", request("a", tools=[tool("x")]), request("a", tools=[tool("y")])),
    ("system_changed", request("a"), request("a", "b", system="t")),
    ("messages_rewritten", request("a", "b"), request("summary", "c")),
    ("expired_or_evicted", request("a"), request("a", "b")),
]


@pytest.mark.parametrize(("cause", "first", "second"), CAUSES, ids=[c[0] for c in CAUSES])
def test_the_first_change_in_the_prompt_is_named(
    cause: str, first: Request, second: Request
) -> None:
    session = MemorySession()
    sent = watch_cache(session, None, first, USED)
    watch_cache(session, sent, second, LOST)
    (broken,) = session.of("prompt_cache_break")
    assert broken.primary_reason == cause
    assert broken.frontier_tokens == 10_000
    assert broken.shortfall_tokens == 10_000
    assert broken.retention_ratio == 0.0


def test_tools_that_came_went_and_changed_are_named() -> None:
    session = MemorySession()
    first = request("a", tools=[tool("gone"), tool("kept"), tool("same")])
    second = request("a", tools=[tool("kept", "other"), tool("same"), tool("new")])
    watch_cache(session, watch_cache(session, None, first, USED), second, LOST)
    (broken,) = session.of("prompt_cache_break")
    assert broken.tools_added == ["new"]
    assert broken.tools_removed == ["gone"]
    assert broken.tools_redefined == ["kept"]


def test_nothing_is_said_while_the_cache_holds_or_where_there_is_none() -> None:
    session = MemorySession()
    sent = watch_cache(session, None, request("a"), USED)
    sent = watch_cache(session, sent, request("a", "b"), USED)
    none = Usage(input_tokens=10_000, output_tokens=1, cache_read_tokens=0)
    cold = watch_cache(session, None, request("a"), none)
    watch_cache(session, cold, request("b"), none)
    silent = Usage(input_tokens=10_000, output_tokens=1)
    assert watch_cache(session, sent, request("c"), silent) is sent
    assert not session.of("prompt_cache_break")


async def test_a_run_tells_of_it() -> None:
    steps = [
        {"tools": [call(text="x")], "usage": {"input": 9000, "output": 1, "cached": 8000}},
        {"text": "done", "usage": {"input": 9100, "output": 1, "cached": 0}},
    ]
    session = await drained(make_run(steps, "go", tools=[EchoTool()]))
    (broken,) = session.of("prompt_cache_break")
    assert broken.primary_reason == "expired_or_evicted"


@pytest.mark.parametrize(("order", "told"), [("ab", None), ("ba", True)])
def test_tools_in_another_order_are_named(order: str, told: bool | None) -> None:
    for first, second in ((order, "ab"), ("ab", order)):
        session = MemorySession()
        sent = watch_cache(session, None, request("a", tools=map(tool, first)), USED)
        watch_cache(session, sent, request("b", tools=map(tool, second)), LOST)
        (broken,) = session.of("prompt_cache_break")
        assert broken.tools_reordered is told


def test_further_changes_are_named_as_well() -> None:
    session = MemorySession()
    sent = watch_cache(session, None, request("a", tools=[tool("x")]), USED)
    changed = request("b", tools=[tool("y")], model="n", system="t")
    watch_cache(session, sent, changed, LOST)
    (broken,) = session.of("prompt_cache_break")
    assert [broken.primary_reason, *broken.contributing_reasons] == [
        "model_changed",
        "tools_changed",
        "system_changed",
        "messages_rewritten",
    ]


def test_the_part_that_was_still_cached_is_counted() -> None:
    session = MemorySession()
    partly = Usage(input_tokens=10_100, output_tokens=1, cache_read_tokens=1_000)
    watch_cache(session, watch_cache(session, None, request("a"), USED), request("b"), partly)
    (broken,) = session.of("prompt_cache_break")
    assert (broken.survived_tokens, broken.shortfall_tokens) == (1_000, 9_000)
    assert broken.retention_ratio == 0.1


@pytest.mark.parametrize(("before", "after"), [("m", "n"), ("n", "m"), ("m", "m")])
def test_both_models_are_named_if_another_one_was_used(before: str, after: str) -> None:
    session = MemorySession()
    first, second = request("a", model=before), request("b", model=after)
    watch_cache(session, watch_cache(session, None, first, USED), second, LOST)
    (broken,) = session.of("prompt_cache_break")
    named = (before, after) if before != after else (None, None)
    assert (broken.model_from, broken.model_to) == named


@pytest.mark.parametrize(("tokens", "told"), [(1023, 0), (1024, 1), (900, 0)])
def test_a_prompt_too_short_to_be_cached_is_not_missed(tokens: int, told: int) -> None:
    session = MemorySession()
    used = Usage(input_tokens=tokens, output_tokens=1, cache_read_tokens=5)
    watch_cache(session, watch_cache(session, None, request("a"), used), request("b"), LOST)
    assert len(session.of("prompt_cache_break")) == told
