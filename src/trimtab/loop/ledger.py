"""What a session and everything under it may spend, and has spent."""

from collections.abc import Callable, Mapping

import msgspec

from trimtab.contracts.provider import CREDIT_USD, Price, Usage
from trimtab.contracts.text import count


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What has been paid for so far.

    `calls` counts recorded calls by agent, `agents` tells tokens and USD of each sub-agent, and
    `dearest` what the dearest call so far came to.
    """

    tokens: int = 0
    usd: float = 0.0
    calls: Mapping[str | None, int] = {}
    agents: Mapping[str, tuple[int, float]] = {}
    dearest: tuple[int, float] = (0, 0.0)


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a call may cost at most, as far as can be told before it is made."""

    tokens: int
    usd: float = 0.0


def estimate_call(price: Price | None, prompt: int, output: int) -> Estimate:
    usage = Usage(input_tokens=prompt, output_tokens=output)
    usd = price.of(usage) if price else None
    return Estimate(tokens=prompt + output, usd=usd or 0.0)


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Limits; None means none."""

    tokens: int | None = None
    usd: float | None = None
    in_credits: bool = False
    """Whether the money was given in AI credits."""


class _Reservation(msgspec.Struct, frozen=True, kw_only=True):
    estimate: Estimate
    calls_before: int


class Ledger:
    """One per session tree, shared by its agents.

    A call reserves before it is made. The reservation is settled by the record of the call in the
    log, whatever that call came to, so the ledger never disagrees with the log.
    """

    def __init__(self, allowance: Allowance, spending: Callable[[], Spending]) -> None:
        self.allowance = allowance
        self.spending = spending
        self._reserved: dict[str | None, _Reservation] = {}

    def fits(self, *estimates: Estimate) -> bool:
        """Whether these calls may all still be made."""
        tokens, usd = self._committed()
        tokens += sum(e.tokens for e in estimates)
        usd += sum(e.usd for e in estimates)
        limit = self.allowance
        return (limit.tokens is None or tokens <= limit.tokens) and (
            limit.usd is None or usd <= limit.usd
        )

    def reserve(self, agent: str | None, estimate: Estimate) -> None:
        """Hold back what one agent's next call may cost."""
        calls = self.spending().calls.get(agent, 0)
        self._reserved[agent] = _Reservation(estimate=estimate, calls_before=calls)

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        """Hold back what a call beside the loop may cost, if it fits."""
        estimate = estimate_call(price, prompt, output)
        if not self.fits(estimate):
            return False
        self.reserve(purpose, estimate)
        return True

    def slice(self, agent: str) -> "Slice":
        """What a sub-agent may spend: half of what is left, so that its caller can go on."""
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
        """How much of the nearest limit is spent, from 0 on."""
        spent, limit = self.spending(), self.allowance
        shares = [
            used / allowed if allowed else 1.0
            for used, allowed in ((spent.tokens, limit.tokens), (spent.usd, limit.usd))
            if allowed is not None
        ]
        return max(shares, default=0.0)

    def describe(self) -> str:
        """What is spent of what, for a person."""
        spent, limit = self.spending(), self.allowance
        parts = []
        if limit.tokens is not None:
            parts.append(f"{spent.tokens:,} of {count(limit.tokens, 'token')}")
        if limit.usd is not None:
            parts.append(f"${spent.usd:.4f} of ${limit.usd:.4f}")
        return " and ".join(parts)

    def describe_rest(self) -> str:
        """What is left, for a model: money in AI credits where that is how it was given."""
        tokens, usd = self._committed()
        limit, parts = self.allowance, []
        if limit.tokens is not None:
            parts.append(f"{count(max(0, limit.tokens - tokens), 'token')}")
        if limit.usd is not None:
            rest = max(0.0, limit.usd - usd)
            left = rest / CREDIT_USD
            parts.append(f"{left:g} AI credits" if limit.in_credits else f"${rest:.4f}")
        return " and ".join(parts)

    def _committed(self) -> tuple[int, float]:
        """Tokens and USD that are spent or held back.

        A call under way may cost as much as the dearest so far, so that however many agents are at
        work, only one call can go past a limit.
        """
        spent = self.spending()
        tokens, usd = spent.dearest
        held = [
            one.estimate
            for agent, one in self._reserved.items()
            if spent.calls.get(agent, 0) == one.calls_before
        ]
        return (
            spent.tokens + sum(max(one.tokens, tokens) for one in held),
            spent.usd + sum(max(one.usd, usd) for one in held),
        )


class Slice(Ledger):
    """The part of a ledger that one sub-agent, and those below it, may spend.

    It is a cap and holds nothing back: a call must fit into the slice and into the whole.
    """

    def __init__(self, whole: Ledger, agent: str, allowance: Allowance) -> None:
        super().__init__(allowance, self._spent_here)
        self._whole = whole
        self._agent = agent
        self._below: list[Slice] = []

    def slice(self, agent: str) -> "Slice":
        made = super().slice(agent)
        self._below.append(made)
        return made

    def fits(self, *estimates: Estimate) -> bool:
        return super().fits(*estimates) and self._whole.fits(*estimates)

    def reserve(self, agent: str | None, estimate: Estimate) -> None:
        super().reserve(agent, estimate)
        self._whole.reserve(agent, estimate)

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        return super().reserve_call(f"{purpose}:{self._agent}", prompt, output, price)

    @property
    def _members(self) -> list[str]:
        return [self._agent, *(agent for one in self._below for agent in one._members)]

    def _spent_here(self) -> Spending:
        everything = self._whole.spending()
        spent = [everything.agents.get(agent, (0, 0.0)) for agent in self._members]
        return Spending(
            tokens=sum(tokens for tokens, _ in spent),
            usd=sum(usd for _, usd in spent),
            calls=everything.calls,
            agents=everything.agents,
            dearest=everything.dearest,
        )
