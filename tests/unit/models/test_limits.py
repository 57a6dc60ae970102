"""Limits of a session: those that cannot be enforced are refused, and all spending counts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import Price
from trimtab.models.limits import build_ledger, change_ledger, check_limits
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    log = EventLog.create(str(tmp_path / "events.jsonl"))
    yield Session("s", log, Projections())
    log.close()


def test_a_limit_in_usd_needs_a_price() -> None:
    with pytest.raises(ConfigurationError, match=r"No price is known for the model mystery"):
        check_limits("mystery", LimitOptions(max_usd=1.0), None)
    check_limits("mystery", LimitOptions(max_usd=1.0), Price(input=1, output=1))
    check_limits("mystery", LimitOptions(max_tokens=1), None)


def test_a_session_without_limits_has_no_ledger(session: Session) -> None:
    assert build_ledger(session, LimitOptions()) is None
    for limits in (LimitOptions(max_tokens=1), LimitOptions(max_usd=1.0)):
        assert build_ledger(session, limits) is not None


def test_calls_whose_bill_is_unknown_count_as_estimated(session: Session) -> None:
    ledger = build_ledger(session, LimitOptions(max_tokens=1_000, max_usd=2.0, in_credits=True))
    assert ledger is not None
    assert ledger.allowance.in_credits
    paid = ModelCall(
        purpose="main",
        model="m",
        status="success",
        input_tokens=100,
        output_tokens=20,
        cost_usd=0.5,
    )
    session.emit(paid)
    lost = ModelCall(
        purpose="subagent",
        model="m",
        status="aborted",
        estimated_tokens=44,
        estimated_cost_usd=0.25,
    )
    session.emit(lost, agent_id="child")
    session.emit(paid, agent_id="child")
    spent = ledger.spending()
    assert (spent.tokens, spent.usd) == (284, 1.25)
    assert spent.agents == {"child": (120, 0.5)}
    assert spent.calls == {None: 1, "child": 2}
    assert spent.dearest == (120, 0.5)


def test_other_limits_change_the_ledger_in_use(session: Session) -> None:
    used = build_ledger(session, LimitOptions(max_tokens=1_000))
    assert used is not None
    assert change_ledger(used, session, LimitOptions(max_tokens=2_000), None) is used
    assert used.allowance.tokens == 2_000
    assert change_ledger(used, session, LimitOptions(), None) is None
    assert used.allowance.tokens is None


def test_the_first_limits_of_a_session_make_a_ledger(session: Session) -> None:
    made = change_ledger(None, session, LimitOptions(max_tokens=2_000), None)
    assert made is not None
    assert made.allowance.tokens == 2_000


def test_a_call_that_reports_no_usage_counts_as_nothing(session: Session) -> None:
    ledger = build_ledger(session, LimitOptions(max_tokens=1_000, max_usd=2.0))
    assert ledger is not None
    spent = ledger.spending()
    assert (spent.tokens, spent.usd, spent.agents) == (0, 0.0, {})
    session.emit(ModelCall(purpose="subagent", model="m", status="success"), agent_id="child")
    spent = ledger.spending()
    assert (spent.tokens, spent.usd, spent.agents) == (0, 0.0, {"child": (0, 0)})


def test_the_ledger_asks_whoever_answers_for_limits(session: Session) -> None:
    async def ask(spent: float, limit: float) -> bool:
        return True

    ledger = build_ledger(session, LimitOptions(max_usd=1.0), ask)
    assert ledger is not None
    assert ledger.ask_limit is ask
