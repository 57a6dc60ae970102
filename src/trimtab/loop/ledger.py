"""What a session and everything under it may spend, and has spent."""

from collections.abc import Callable

import msgspec

from trimtab.contracts.provider import Price, Usage


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What has been paid for so far. `calls` counts recorded calls by agent."""

    tokens: int = 0
    usd: float = 0.0
    calls: dict[str | None, int] = {}


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
        self._spending = spending
        self._reserved: dict[str | None, _Reservation] = {}

    def fits(self, *estimates: Estimate) -> bool:
        """Whether these calls may all still be made."""
        spent = self._spending()
        open_ones = [
            r.estimate for agent, r in self._reserved.items() if self._is_open(spent, agent)
        ]
        tokens = spent.tokens + sum(e.tokens for e in (*open_ones, *estimates))
        usd = spent.usd + sum(e.usd for e in (*open_ones, *estimates))
        limit = self.allowance
        return (limit.tokens is None or tokens <= limit.tokens) and (
            limit.usd is None or usd <= limit.usd
        )

    def reserve(self, agent: str | None, estimate: Estimate) -> None:
        """Hold back what one agent's next call may cost."""
        calls = self._spending().calls.get(agent, 0)
        self._reserved[agent] = _Reservation(estimate=estimate, calls_before=calls)

    def reserve_call(self, purpose: str, prompt: int, output: int, price: Price | None) -> bool:
        """Hold back what a call beside the loop may cost, if it fits."""
        estimate = estimate_call(price, prompt, output)
        if not self.fits(estimate):
            return False
        self.reserve(purpose, estimate)
        return True

    def share(self) -> float:
        """How much of the nearest limit is spent, from 0 on."""
        spent, limit = self._spending(), self.allowance
        shares = [
            used / allowed if allowed else 1.0
            for used, allowed in ((spent.tokens, limit.tokens), (spent.usd, limit.usd))
            if allowed is not None
        ]
        return max(shares, default=0.0)

    def describe(self) -> str:
        """What is spent of what, for a person."""
        spent, limit = self._spending(), self.allowance
        parts = []
        if limit.tokens is not None:
            parts.append(f"{spent.tokens:,} of {limit.tokens:,} tokens")
        if limit.usd is not None:
            parts.append(f"${spent.usd:.4f} of ${limit.usd:.4f}")
        return " and ".join(parts)

    def _is_open(self, spent: Spending, agent: str | None) -> bool:
        return spent.calls.get(agent, 0) == self._reserved[agent].calls_before
