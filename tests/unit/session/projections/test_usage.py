"""What a session spent, folded from the records of its model calls."""

from typing import Any

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import ModelCall, RuntimeEnded
from trimtab.session.projections.usage import UsageLedger


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
