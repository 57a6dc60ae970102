"""What a session spent, folded from the records of its model calls."""

from typing import Any

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import ModelCall, RuntimeEnded
from trimtab.contracts.events.subagent import SubagentStarted
from trimtab.session.projections.usage import ModelUsage, UsageLedger, name_caller


def fold(*calls: tuple[str | None, dict[str, Any]]) -> UsageLedger:
    ledger = UsageLedger()
    for agent, fields in calls:
        data = ModelCall(**{"purpose": "main", "model": "m", "status": "success", **fields})
        event = Event(
            type=data.wire_name, data=data, id="1", timestamp="t", parent_id=None, agent_id=agent
        )
        ledger.apply(event)
    return ledger


def test_numbers_that_no_service_reported_stay_unknown() -> None:
    total = fold((None, {})).total
    assert total.requests == 1
    assert (total.input_tokens, total.output_tokens, total.cost_usd) == (None, None, None)
    assert total.unpriced_requests == 1


def test_calls_add_up_by_model_agent_and_caller() -> None:
    ledger = fold(
        (None, {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.5, "duration_ms": 7}),
        ("child", {"input_tokens": 200, "output_tokens": 5, "cost_usd": 0.25, "model": "n"}),
        (None, {"purpose": "title", "input_tokens": 30, "duration_ms": 3}),
        ("child", {"purpose": "compaction", "input_tokens": 40}),
    )
    assert (ledger.total.input_tokens, ledger.total.output_tokens) == (370, 15)
    assert ledger.total.cost_usd == 0.75
    assert ledger.total.unpriced_requests == 2
    assert {name: usage.requests for name, usage in ledger.models.items()} == {"m": 3, "n": 1}
    assert {name: usage.input_tokens for name, usage in ledger.agents.items()} == {"child": 240}
    assert ledger.calls == {None: 1, "child": 1, "title": 1, "compaction:child": 1}
    assert ledger.dearest == (205, 0.5)
    assert ledger.api_duration_ms == 10
    assert ledger.metrics()["n"]["usage"] == {
        "inputTokens": 200,
        "outputTokens": 5,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
    }


def test_only_calls_of_the_main_conversation_are_the_last() -> None:
    ledger = fold(
        (None, {"input_tokens": 100, "output_tokens": 10}),
        ("child", {"input_tokens": 200, "model": "n"}),
        (None, {"purpose": "title", "input_tokens": 30, "model": "n"}),
        (None, {"status": "error"}),
    )
    assert (ledger.last_model, ledger.last_input_tokens, ledger.last_output_tokens) == (
        "m",
        100,
        10,
    )


def test_calls_that_were_broken_off_count_as_estimated() -> None:
    ledger = fold(
        (None, {"status": "aborted", "estimated_tokens": 40, "estimated_cost_usd": 0.1}),
        (None, {"status": "aborted", "estimated_tokens": 2}),
    )
    assert ledger.unsettled == (42, 0.1)


def test_a_later_price_settles_the_calls_before_it() -> None:
    ledger = fold((None, {}), (None, {}), (None, {"cost_usd": 1.0, "settles": 1}))
    assert ledger.total.unpriced_requests == 1
    assert fold((None, {}), (None, {"cost_usd": 1.0, "settles": 5})).total.unpriced_requests == 0


def test_premium_requests_add_up_by_model_with_those_a_runtime_tells_of() -> None:
    ledger = fold(
        (None, {"premium_requests": 3}),
        (None, {}),
        (None, {"model": "n", "premium_requests": 0.25}),
    )
    assert ledger.premium_requests == 3.25
    costs = {name: metric["requests"]["cost"] for name, metric in ledger.metrics().items()}
    assert costs == {"m": 3, "n": 0.25}
    ended = RuntimeEnded(runtime="copilot", success=True, premium_requests=2)
    ledger.apply(Event(type=ended.wire_name, data=ended, id="2", timestamp="t", parent_id=None))
    assert ledger.premium_requests == 5.25


def applied(ledger: UsageLedger, data: Any, agent: str | None = None) -> None:
    ledger.apply(
        Event(type=data.wire_name, data=data, id="2", timestamp="t", parent_id=None, agent_id=agent)
    )


def test_a_ledger_begins_with_nothing() -> None:
    ledger = UsageLedger()
    assert ledger.total == ModelUsage()
    assert (ledger.total.requests, ledger.total.unpriced_requests) == (0, 0)
    assert (ledger.total.premium_requests, ledger.total.duration_ms) == (0, 0)
    assert (ledger.unsettled, ledger.dearest) == ((0, 0.0), (0, 0.0))
    assert (ledger.premium_requests, ledger.api_duration_ms) == (0, 0)
    assert (ledger.metrics(), ledger.agent_metrics(), ledger.calls) == ({}, {}, {})


def test_a_runtime_and_calls_that_tell_nothing_add_nothing() -> None:
    ledger = fold((None, {}))
    applied(ledger, RuntimeEnded(runtime="copilot", success=True))
    assert (ledger.premium_requests, ledger.total.premium_requests) == (0, 0)
    assert (ledger.api_duration_ms, ledger.total.duration_ms) == (0, 0)
    assert (ledger.dearest, ledger.unsettled) == ((0, 0.0), (0, 0.0))
    assert ledger.metrics()["m"]["usage"] == {
        "inputTokens": 0,
        "outputTokens": 0,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
    }


def test_every_count_of_a_call_is_summed() -> None:
    counts = {
        "input_tokens": 1,
        "output_tokens": 20,
        "cache_read_tokens": 300,
        "cache_write_tokens": 4000,
        "reasoning_tokens": 50_000,
        "cost_usd": 0.5,
        "duration_ms": 7,
        "premium_requests": 2,
    }
    total = fold((None, counts), (None, counts)).total
    doubled: dict[str, Any] = {name: 2 * value for name, value in counts.items()}
    assert total == ModelUsage(requests=2, **doubled)
    ledger = fold((None, counts), (None, counts))
    assert ledger.metrics()["m"] == {
        "requests": {"count": 2, "cost": 4},
        "usage": {
            "inputTokens": 2,
            "outputTokens": 40,
            "cacheReadTokens": 600,
            "cacheWriteTokens": 8000,
        },
    }


def test_the_dearest_call_is_the_largest_of_each_kind() -> None:
    ledger = fold(
        (None, {"input_tokens": 100, "output_tokens": 5, "cost_usd": 0.1}),
        (None, {"input_tokens": 50, "output_tokens": 5, "cost_usd": 0.9}),
        (None, {"output_tokens": 7}),
    )
    assert ledger.dearest == (105, 0.9)
    assert ledger.calls == {None: 3}


def test_sub_agents_are_described_with_their_names_and_models() -> None:
    ledger = UsageLedger()
    started = SubagentStarted(
        tool_call_id="c", agent_name="explore", agent_display_name="Explorer", agent_description="x"
    )
    applied(ledger, started, "one")
    applied(ledger, started)
    call = ModelCall(purpose="subagent", model="m", status="success", input_tokens=5, duration_ms=7)
    for agent in ("one", "one", "two", None):
        applied(ledger, call, agent)
    metrics = ledger.agent_metrics()
    assert list(metrics) == ["one", "two"]
    assert metrics["one"] == {
        "modelMetrics": {
            "m": {
                "requests": {"count": 2, "cost": 0},
                "usage": {
                    "inputTokens": 10,
                    "outputTokens": 0,
                    "cacheReadTokens": 0,
                    "cacheWriteTokens": 0,
                },
            }
        },
        "totalApiDurationMs": 14,
        "totalNanoAiu": 0,
        "agentName": "explore",
        "agentDisplayName": "Explorer",
    }
    assert "agentName" not in metrics["two"]
    assert metrics["two"]["totalApiDurationMs"] == 7


def test_a_caller_outside_a_conversation_is_named_by_purpose_and_agent() -> None:
    assert name_caller("title", None) == "title"
    assert name_caller("title", "child") == "title:child"


def test_the_last_call_keeps_its_input_when_a_later_one_reports_none() -> None:
    ledger = fold(
        (None, {"input_tokens": 100, "output_tokens": 10}),
        (None, {"model": "n", "output_tokens": 3}),
        (None, {"model": "n", "input_tokens": 0}),
    )
    assert (ledger.last_model, ledger.last_input_tokens, ledger.last_output_tokens) == (
        "n",
        0,
        None,
    )
