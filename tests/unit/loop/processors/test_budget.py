"""No call is made past the limit; what was spent is what the log says."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import check_lines
from loopkit import MemorySession, make_run
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import Price, Usage
from trimtab.contracts.run import Prompt
from trimtab.loop.ledger import Allowance, Estimate, Ledger, Spending
from trimtab.loop.processors.budget import Budget, estimate_prompt
from trimtab.providers.prices import price_of
from trimtab.testing.playing import play

LOOP: Any = {"replies": [], "otherwise": {"tools": [{"name": "view", "arguments": {"path": "."}}]}}


async def test_a_token_limit_ends_a_run_that_would_never_end_with_one_last_answer() -> None:
    played = await play(LOOP, "go", limits=LimitOptions(max_tokens=40_000))
    assert (played.stop.reason, played.stop.exit_code) == ("budget", 5)
    spent = played.projections.usage.total
    assert (spent.input_tokens or 0) + (spent.output_tokens or 0) <= 40_000
    assert played.requests[-1].tools == ()
    assert "last answer" in played.requests[-1].messages[-1].parts[0].text  # type: ignore[union-attr]
    assert played.of("session.warning")[0].warning_type == "budget"
    check_lines(played.lines)


async def test_a_limit_below_the_first_call_makes_no_call_at_all() -> None:
    played = await play(LOOP, "go", limits=LimitOptions(max_tokens=100))
    assert played.requests == []
    assert played.stop.exit_code == 5


async def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    played = await play([{"text": "Done."}], "go", limits=LimitOptions(max_tokens=1_000_000))
    assert played.stop.exit_code == 0
    assert played.requests[0].tools


async def test_money_is_counted_by_the_price_table() -> None:
    usage = {"input": 1_000_000, "output": 100_000}
    played = await play(
        [{"text": "Done.", "usage": usage}], "go", model="claude-sonnet-4-5-20250929"
    )
    assert played.projections.usage.total.cost_usd == pytest.approx(3.0 + 1.5)


async def test_a_money_limit_holds_and_counts_what_was_spent_before_a_resume(tmp_path: Any) -> None:
    usage = {"input": 100_000, "output": 1_000}
    home = str(tmp_path)
    script = {"replies": [], "otherwise": {"text": "More.", "usage": usage}}
    limits = LimitOptions(max_usd=1.0)
    first = await play(script, "go", home=home, model="gpt-4.1", limits=limits)
    assert first.stop.exit_code == 0
    again = await play(
        script, *["more"] * 9, home=home, model="gpt-4.1", limits=limits, resume=first.session_id
    )
    assert again.stop.exit_code == 5
    assert (again.projections.usage.total.cost_usd or 0) <= 1.0


async def test_a_limit_in_money_without_a_price_is_refused_before_anything_starts(
    tmp_path: Any,
) -> None:
    with pytest.raises(ConfigurationError, match="No price is known"):
        await play(
            [{"text": "x"}],
            "go",
            home=str(tmp_path),
            model="mystery",
            limits=LimitOptions(max_usd=1.0),
        )
    assert not os.path.exists(tmp_path / "session-state") or not os.listdir(
        tmp_path / "session-state"
    )


async def test_failed_calls_are_on_the_ledger_too() -> None:
    script = [{"error": {"status": 500}}, {"text": "Done."}]
    played = await play(script, "go", limits=LimitOptions(retry_delay=0.001))
    assert played.projections.usage.total.requests == 2 == len(played.requests)


def test_reservations_of_agents_that_run_side_by_side_add_up() -> None:
    calls: dict[str | None, int] = {}
    ledger = Ledger(Allowance(tokens=100), lambda: Spending(tokens=10, calls=calls))
    assert ledger.fits(Estimate(tokens=50))
    ledger.reserve("a", Estimate(tokens=50))
    assert not ledger.fits(Estimate(tokens=50))
    assert ledger.fits(Estimate(tokens=40))
    calls["a"] = 1  # the call of agent a is on the log: its reservation is settled
    assert ledger.fits(Estimate(tokens=90))


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4.1", True),
        ("gpt-4.1-2025-04-14", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("CLAUDE-haiku-4.5", True),
        ("llama3", False),
    ],
)
def test_prices_are_found_by_any_spelling_of_a_model(model: str, known: bool) -> None:
    assert (price_of(model, {}) is not None) == known


def test_cached_tokens_are_priced_apart() -> None:
    price = Price(input=10, output=0, cache_read=1, cache_write=12.5)
    usage = Usage(
        input_tokens=1_000_000,
        output_tokens=0,
        cache_read_tokens=500_000,
        cache_write_tokens=100_000,
    )
    assert price.of(usage) == pytest.approx(4.0 + 0.5 + 1.25)
    assert price.of(Usage(input_tokens=1)) is None


def test_a_price_table_of_ones_own_wins(tmp_path: Any) -> None:
    table = tmp_path / "prices.json"
    table.write_text('{"models": {"llama3": {"input": 0, "output": 0}}}')
    found = price_of("llama3", {"TRIMTAB_PRICES": str(table)})
    assert found is not None
    assert found.input == 0


steps = st.one_of(
    st.just({"tools": [{"name": "view", "arguments": {"path": "."}}]}),
    st.just({"tools": [{"name": "nope", "arguments": {}}] * 3}),
    st.just({"text": "I am still thinking about it."}),
    st.just({"error": {"status": 500}}),
    st.just(
        {"tools": [{"name": "task_complete", "arguments": {"summary": "x", "outcome": "blocked"}}]}
    ),
    st.integers(0, 20_000).map(lambda n: {"text": "x", "usage": {"input": n, "output": n // 7}}),
)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    st.lists(steps, max_size=8),
    steps,
    st.integers(500, 60_000),
    st.sampled_from(["interactive", "autopilot"]),
)
def test_no_adversarial_run_goes_past_its_limit_by_more_than_one_request(
    replies: Any, rest: Any, limit: int, mode: str
) -> None:
    import asyncio
    import shutil
    import tempfile

    home = tempfile.mkdtemp(prefix="trimtab-budget-")
    limits = LimitOptions(max_tokens=limit, max_turns=60, retries=2, retry_delay=0.0)
    script = {"replies": replies, "otherwise": rest}
    try:
        played = asyncio.run(play(script, "go", home=home, cwd=home, mode=mode, limits=limits))
    finally:
        shutil.rmtree(home)
    calls = [call for call in played.of("trimtab.model_call") if call.status == "success"]
    tokens = [(call.input_tokens or 0) + (call.output_tokens or 0) for call in calls]
    assert sum(tokens[:-1]) <= limit, "it went on after the limit"
    total = played.projections.usage.total
    assert total.requests == len(played.requests), "the ledger has every call"
    assert sum(tokens) == (total.input_tokens or 0) + (total.output_tokens or 0)


def budget_texts(session: MemorySession) -> list[str]:
    """What the model was told about the budget."""
    return [
        str(data.transformed_content)
        for data in session.of("user.message")
        if data.source == "budget"
    ]


async def test_the_model_is_told_what_is_left_after_a_prompt_of_a_person_and_not_otherwise() -> (
    None
):
    spent = Spending(tokens=1_500)
    budget = Budget(Ledger(Allowance(tokens=10_000), lambda: spent))
    run = make_run([], "go", processors=[budget])
    session = run.session
    assert isinstance(session, MemorySession)
    await budget.before_request(run)
    assert budget_texts(session) == []
    await budget.on_prompt(run, Prompt(text="later", source="jit-instruction"))
    await budget.before_request(run)
    assert budget_texts(session) == []
    await budget.on_prompt(run, Prompt(text="now", source="user"))
    await budget.before_request(run)
    await budget.before_request(run)
    [told] = budget_texts(session)
    assert "7,476 tokens" in told  # a call under way is counted, too


async def test_a_level_is_announced_once_and_not_again_after_the_limit_was_raised() -> None:
    spent, ledger = Spending(tokens=600), Ledger(Allowance(tokens=1_000), lambda: spent)
    budget = Budget(ledger)
    run = make_run([], "go", processors=[budget])
    session = run.session
    assert isinstance(session, MemorySession)
    await budget.before_request(run)
    await budget.before_request(run)
    ledger.allowance = Allowance(tokens=100_000)
    await budget.before_request(run)
    messages = [data.message for data in session.of("session.info")]
    assert messages == ["50% of the budget is spent: 600 of 1,000 tokens."]


def test_the_tokens_of_a_request_nobody_measured_are_a_quarter_of_its_characters() -> None:
    run = make_run([], "go")
    run.session.emit(UserMessage(content="x" * 400))
    run.session.emit(SystemMessage(role="system", content="y" * 80))
    assert run.measured is None
    assert 120 <= estimate_prompt(run) <= 125


def infos(session: Any) -> list[str]:
    return [data.message for data in session.of("session.info")]


async def test_each_level_is_announced_when_it_is_reached_and_nothing_before() -> None:
    spent = [0]
    budget = Budget(Ledger(Allowance(tokens=100_000), lambda: Spending(tokens=spent[0])))
    run = make_run([], "go", processors=[budget])
    for tokens, told in ((0, 0), (49_999, 0), (50_000, 1), (75_000, 2), (89_999, 2), (90_000, 3)):
        spent[0] = tokens
        await budget.before_request(run)
        assert len(infos(run.session)) == told, tokens


@pytest.mark.parametrize(("left", "is_last"), [(356, True), (355, False)])
async def test_the_last_reply_is_given_256_tokens(left: int, is_last: bool) -> None:
    budget = Budget(Ledger(Allowance(tokens=left), Spending))
    run = make_run([], processors=[budget])
    run.session.emit(UserMessage(content="x" * 4 * 100))
    base = estimate_prompt(run) - 100
    budget = Budget(Ledger(Allowance(tokens=left + base), Spending))
    run.total_turns = 1
    stop = await budget.before_request(run)
    assert (stop is None, run.closing) == (is_last, is_last)


async def test_no_last_reply_is_asked_for_before_the_first_turn() -> None:
    budget = Budget(Ledger(Allowance(tokens=400), Spending))
    run = make_run([], processors=[budget])
    stop = await budget.before_request(run)
    assert stop is not None
    assert (stop.reason, run.closing) == ("budget", False)
    [warning] = run.session.of("session.warning")  # type: ignore[attr-defined]
    assert "0 of 400 tokens spent" in warning.message


async def test_a_call_is_reserved_with_the_output_it_may_have() -> None:
    ledger = Ledger(Allowance(tokens=100_000), Spending)
    budget = Budget(ledger)
    run = make_run([], processors=[budget])
    prompt = estimate_prompt(run)
    assert await budget.before_request(run) is None
    assert ledger.describe_rest() == f"{100_000 - prompt - 1024:,} tokens"
