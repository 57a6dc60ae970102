"""The budget of a session and its sub-agents: what may be spent, is reserved, and was spent."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from trimtab.contracts.provider import CREDIT_USD, Price, Usage
from trimtab.contracts.text import count

AskLimit = Callable[[float, float], Awaitable[bool | None]]
"""Called with the money spent and the limit; True if the limit was changed, None if unanswered."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The spending so far.

    `calls` counts recorded calls by agent, `agents` has the tokens and USD of each sub-agent, and
    `dearest` those of the most expensive call.
    """

    tokens: int = 0
    usd: float = 0.0
    calls: Mapping[str | None, int] = {}
    agents: Mapping[str, tuple[int, float]] = {}
    dearest: tuple[int, float] = (0, 0.0)


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated cost of a call before it is made."""

    tokens: int
    usd: float = 0.0


def estimate_call(price: Price | None, prompt: int, output: int) -> Estimate:
    usage = Usage(input_tokens=prompt, output_tokens=output)
    usd = price.of(usage) if price else None
    return Estimate(tokens=prompt + output, usd=usd or 0.0)


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a ledger; None means no limit."""

    tokens: int | None = None
    usd: float | None = None
    in_credits: bool = False
    """True if the limit in USD was set in AI credits."""


class _Reservation(msgspec.Struct, frozen=True, kw_only=True):
    estimate: Estimate
    calls_before: int


class Ledger:
    """The ledger that all agents of a session share.

    A call reserves its estimated cost before it is made. The record of the call in the log settles
    the reservation, whatever the outcome, so the ledger never disagrees with the log.
    """

    def __init__(self, allowance: Allowance, spending: Callable[[], Spending]) -> None:
        self.allowance = allowance
        self.spending = spending
        self.ask_limit: AskLimit | None = None
        """Asks for a higher limit in AI credits."""
        self._reserved: dict[str | None, _Reservation] = {}

    async def raise_limit(self) -> bool | None:
        """Ask for a higher limit if it is one in AI credits; None if nobody can be asked."""
        limit = self.allowance
        if self.ask_limit is None or limit.usd is None or not limit.in_credits:
            return None
        return await self.ask_limit(self.spending().usd, limit.usd)

    def fits(self, *estimates: Estimate) -> bool:
        """Return True if the budget allows all of these calls together."""
        tokens, usd = self._committed()
        tokens += sum(estimate.tokens for estimate in estimates)
        usd += sum(estimate.usd for estimate in estimates)
        limit = self.allowance
        return (limit.tokens is None or tokens <= limit.tokens) and (
            limit.usd is None or usd <= limit.usd
        )

    def reserve(self, agent: str | None, estimate: Estimate) -> None:
        """Reserve the estimated cost of an agent's next call."""
        calls = self.spending().calls.get(agent, 0)
        self._reserved[agent] = _Reservation(estimate=estimate, calls_before=calls)

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        """Reserve the cost of a side call; return False if the budget does not allow it."""
        estimate = estimate_call(price, prompt, output)
        if not self.fits(estimate):
            return False
        self.reserve(purpose, estimate)
        return True

    def slice(self, agent: str) -> "Slice":
        """Return a sub-agent's budget: half of what is left, so that its caller can continue."""
        tokens, usd = self._committed()
        limit = self.allowance
        return Slice(
            self,
            agent,
            Allowance(
                tokens=None if limit.tokens is None else max(0, limit.tokens - tokens) // 2,
                usd=None if limit.usd is None else max(0.0, limit.usd - usd) / 2,
            ),
        )

    def share(self) -> float:
        """Return the spent share of the nearest limit; 1.0 means that it is used up."""
        spent, limit = self.spending(), self.allowance
        shares = [
            used / allowed if allowed else 1.0
            for used, allowed in ((spent.tokens, limit.tokens), (spent.usd, limit.usd))
            if allowed is not None
        ]
        return max(shares, default=0.0)

    def describe(self) -> str:
        """Return the spending and the limits as text for a person."""
        spent, limit = self.spending(), self.allowance
        parts = []
        if limit.tokens is not None:
            parts.append(f"{spent.tokens:,} of {count(limit.tokens, 'token')}")
        if limit.usd is not None:
            parts.append(f"${spent.usd:.4f} of ${limit.usd:.4f}")
        return " and ".join(parts)

    def describe_rest(self) -> str:
        """Return the remaining budget as text for a model; money in the unit of the limit."""
        tokens, usd = self._committed()
        limit, parts = self.allowance, []
        if limit.tokens is not None:
            parts.append(f"{count(max(0, limit.tokens - tokens), 'token')}")
        if limit.usd is not None:
            rest = max(0.0, limit.usd - usd)
            amount = rest / CREDIT_USD
            parts.append(f"{amount:g} AI credits" if limit.in_credits else f"${rest:.4f}")
        return " and ".join(parts)

    def _committed(self) -> tuple[int, float]:
        """Return the tokens and USD that are spent or reserved.

        A call in progress counts at least as much as the most expensive call so far, so that only
        one call can exceed a limit, however many agents are running.
        """
        spent = self.spending()
        tokens, usd = spent.dearest
        open_estimates = [
            reservation.estimate
            for agent, reservation in self._reserved.items()
            if spent.calls.get(agent, 0) == reservation.calls_before
        ]
        return (
            spent.tokens + sum(max(estimate.tokens, tokens) for estimate in open_estimates),
            spent.usd + sum(max(estimate.usd, usd) for estimate in open_estimates),
        )


class Slice(Ledger):
    """The part of a ledger that a sub-agent and its own sub-agents may spend.

    It is a cap, not a reservation: a call must fit into the slice and into the whole ledger.
    """

    def __init__(self, whole: Ledger, agent: str, allowance: Allowance) -> None:
        super().__init__(allowance, self._own_spending)
        self._whole = whole
        self._agent = agent
        self._slices: list[Slice] = []

    def slice(self, agent: str) -> "Slice":
        part = super().slice(agent)
        self._slices.append(part)
        return part

    def fits(self, *estimates: Estimate) -> bool:
        return super().fits(*estimates) and self._whole.fits(*estimates)

    def reserve(self, agent: str | None, estimate: Estimate) -> None:
        super().reserve(agent, estimate)
        self._whole.reserve(agent, estimate)

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        return super().reserve_call(f"{purpose}:{self._agent}", prompt, output, price)

    @property
    def _members(self) -> list[str]:
        return [self._agent, *(agent for part in self._slices for agent in part._members)]

    def _own_spending(self) -> Spending:
        whole = self._whole.spending()
        spent = [whole.agents.get(agent, (0, 0.0)) for agent in self._members]
        return Spending(
            tokens=sum(tokens for tokens, _ in spent),
            usd=sum(usd for _, usd in spent),
            calls=whole.calls,
            agents=whole.agents,
            dearest=whole.dearest,
        )
