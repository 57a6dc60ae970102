"""Slices of a budget: what a sub-agent may spend, and what all of them together may."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.loop.ledger import Allowance, Estimate, Ledger, Spending


class Account:
    """The spending of calls, as the log reports it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.calls: dict[str | None, int] = {}
        self.agents: dict[str, tuple[int, float]] = {}
        self.bills: list[int] = []

    def spending(self) -> Spending:
        dearest = (max(self.bills, default=0), 0.0)
        total = sum(self.bills)
        return Spending(tokens=total, calls=self.calls, agents=self.agents, dearest=dearest)

    def pay(self, agent: str, tokens: int) -> None:
        self.bills.append(tokens)
        self.calls[agent] = self.calls.get(agent, 0) + 1
        before = self.agents.get(agent, (0, 0.0))[0]
        self.agents[agent] = (before + tokens, 0.0)


def make(limit: int) -> tuple[Account, Ledger]:
    account = Account(limit)
    return account, Ledger(Allowance(tokens=limit), account.spending)


def test_a_slice_is_half_of_what_is_left_at_every_depth() -> None:
    account, whole = make(1000)
    account.pay("main", 200)
    child = whole.slice("child")
    assert child.allowance.tokens == 400
    assert child.slice("grandchild").allowance.tokens == 200


def test_what_is_below_a_slice_is_spent_from_it() -> None:
    account, whole = make(1000)
    child = whole.slice("child")
    grandchild = child.slice("grandchild")
    account.pay("grandchild", 240)
    assert not grandchild.fits(Estimate(tokens=20))
    assert child.fits(Estimate(tokens=260))
    assert not child.fits(Estimate(tokens=261))
    assert whole.fits(Estimate(tokens=760))


def test_summaries_of_agents_are_held_back_apart() -> None:
    account, whole = make(1000)
    child = whole.slice("child")
    assert whole.reserve_call("compaction", 100, 100, None)
    assert child.reserve_call("compaction", 100, 100, None)
    account.calls["compaction"] = 1
    assert whole.fits(Estimate(tokens=800))
    assert not whole.fits(Estimate(tokens=801))


@given(
    limit=st.integers(1_000, 50_000),
    bill=st.integers(1, 5_000),
    guesses=st.lists(st.integers(1, 2_000), min_size=1, max_size=60),
    width=st.integers(1, 10),
)
def test_only_one_call_goes_past_a_limit_however_many_agents_work(
    limit: int, bill: int, guesses: list[int], width: int
) -> None:
    account, whole = make(limit)
    account.pay("main", bill)
    slices = {f"agent {n}": whole.slice(f"agent {n}") for n in range(width)}
    under_way: list[str] = []
    for number, guess in enumerate(guesses):
        agent = f"agent {number % width}"
        if agent in under_way:
            under_way.remove(agent)
            account.pay(agent, bill)
        if slices[agent].fits(Estimate(tokens=guess)):
            slices[agent].reserve(agent, Estimate(tokens=guess))
            under_way.append(agent)
    for agent in under_way:
        account.pay(agent, bill)
    assert sum(account.bills[:-1]) <= max(limit, bill)


def test_a_call_that_costs_exactly_what_is_left_fits_and_one_that_costs_more_does_not() -> None:
    ledger = Ledger(Allowance(tokens=1_000, usd=0.5), Spending)
    assert ledger.fits(Estimate(tokens=1_000, usd=0.5))
    assert not ledger.fits(Estimate(tokens=1_001, usd=0.5))
    assert not ledger.fits(Estimate(tokens=1_000, usd=0.51))
