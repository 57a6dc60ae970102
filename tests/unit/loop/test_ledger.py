"""Slices of a budget: what a sub-agent may spend, and what all of them together may."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.contracts.provider import CREDIT_USD, Price
from trimtab.loop.ledger import Allowance, Estimate, Ledger, Spending, estimate_call


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


def test_a_slice_of_money_is_half_of_the_rest_in_cents_as_well() -> None:
    ledger = Ledger(Allowance(tokens=None, usd=1.5), lambda: Spending(usd=0.5))
    slice_ = ledger.slice("child")
    assert (slice_.allowance.tokens, slice_.allowance.usd) == (None, 0.5)
    spent = Ledger(Allowance(tokens=10, usd=0.1), lambda: Spending(tokens=99, usd=9.0))
    nothing = spent.slice("child").allowance
    assert (nothing.tokens, nothing.usd) == (0, 0.0)


def test_the_share_is_that_of_the_nearest_limit() -> None:
    def spending() -> Spending:
        return Spending(tokens=250, usd=0.4)

    assert Ledger(Allowance(), spending).share() == 0.0
    assert Ledger(Allowance(tokens=1_000), spending).share() == 0.25
    assert Ledger(Allowance(tokens=1_000, usd=0.5), spending).share() == 0.8
    assert Ledger(Allowance(usd=0.0), spending).share() == 1.0


def test_a_call_without_a_price_costs_nothing_against_a_limit_in_money() -> None:
    ledger = Ledger(Allowance(usd=0.5), Spending)
    assert ledger.fits(Estimate(tokens=1_000_000))
    unpriced = estimate_call(None, 100, 20)
    assert (unpriced.tokens, unpriced.usd) == (120, 0.0)
    priced = estimate_call(Price(input=2.0, output=10.0), 1_000_000, 100_000)
    assert (priced.tokens, priced.usd) == (1_100_000, 3.0)


def test_a_call_under_way_counts_at_least_as_much_as_the_dearest_so_far() -> None:
    spent = Spending(tokens=100, usd=1.0, dearest=(60, 0.5))
    ledger = Ledger(Allowance(tokens=200, usd=2.0), lambda: spent)
    ledger.reserve("a", Estimate(tokens=10, usd=0.1))
    assert ledger.fits(Estimate(tokens=40, usd=0.5))
    assert not ledger.fits(Estimate(tokens=41, usd=0.0))
    assert not ledger.fits(Estimate(tokens=0, usd=0.51))
    fresh = Ledger(Allowance(tokens=200, usd=2.0), Spending)
    fresh.reserve("a", Estimate(tokens=10, usd=0.25))
    assert fresh.fits(Estimate(tokens=190, usd=1.75))
    assert not fresh.fits(Estimate(tokens=0, usd=1.76))


def test_the_ledger_says_what_is_spent_and_what_is_left_in_the_unit_of_the_limit() -> None:
    def spending() -> Spending:
        return Spending(tokens=1_500, usd=0.25)

    both = Ledger(Allowance(tokens=2_000, usd=1.0), spending)
    assert both.describe() == "1,500 of 2,000 tokens and $0.2500 of $1.0000"
    assert both.describe_rest() == "500 tokens and $0.7500"
    credit = Ledger(Allowance(usd=1.0, in_credits=True), spending)
    assert credit.describe_rest() == f"{0.75 / CREDIT_USD:g} AI credits"
    over = Ledger(Allowance(tokens=1_000, usd=0.1), spending)
    assert over.describe_rest() == "0 tokens and $0.0000"
    assert Ledger(Allowance(), spending).describe_rest() == ""


def test_a_side_call_that_does_not_fit_reserves_nothing() -> None:
    ledger = Ledger(Allowance(tokens=100), Spending)
    assert not ledger.reserve_call("title", 90, 11, None)
    assert ledger.fits(Estimate(tokens=100))
    assert ledger.reserve_call("title", 90, 10, None)
    assert not ledger.fits(Estimate(tokens=1))


async def test_only_a_limit_in_credits_is_asked_about() -> None:
    asked: list[tuple[float, float]] = []

    async def ask(spent: float, limit: float) -> bool:
        asked.append((spent, limit))
        return True

    for allowance, someone, expected in (
        (Allowance(usd=2.0, in_credits=True), ask, True),
        (Allowance(usd=2.0, in_credits=True), None, None),
        (Allowance(usd=2.0), ask, None),
        (Allowance(tokens=2, in_credits=True), ask, None),
    ):
        ledger = Ledger(allowance, lambda: Spending(usd=1.5))
        ledger.ask_limit = someone
        assert await ledger.raise_limit() is expected
    assert asked == [(1.5, 2.0)]


def test_a_slice_is_a_whole_number_of_tokens() -> None:
    _, whole = make(999)
    tokens = whole.slice("child").allowance.tokens
    assert (tokens, type(tokens)) == (499, int)


def test_a_sub_agent_that_has_spent_nothing_has_its_whole_slice() -> None:
    ledger = Ledger(Allowance(tokens=1_000, usd=1.0), Spending)
    child = ledger.slice("child")
    assert child.spending() == Spending(tokens=0, usd=0.0)
    assert child.fits(Estimate(tokens=500, usd=0.5))
    assert not child.fits(Estimate(tokens=500, usd=0.51))


def test_a_reservation_ends_when_a_rewind_removes_calls() -> None:
    calls: dict[str | None, int] = {"a": 2}
    ledger = Ledger(Allowance(tokens=100), lambda: Spending(calls=calls))
    ledger.reserve("a", Estimate(tokens=100))
    assert not ledger.fits(Estimate(tokens=1))
    calls["a"] = 1
    assert ledger.fits(Estimate(tokens=100))


def test_nothing_is_spent_or_limited_unless_it_is_said() -> None:
    assert Spending() == Spending(tokens=0, usd=0.0, calls={}, agents={}, dearest=(0, 0.0))
    assert Estimate(tokens=1) == Estimate(tokens=1, usd=0.0)
    assert Allowance() == Allowance(tokens=None, usd=None, in_credits=False)
