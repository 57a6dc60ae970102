"""Limits on what a session may spend."""

from typing import TYPE_CHECKING

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import Price
from trimtab.providers.prices import VARIABLE
from trimtab.session.session import Session

if TYPE_CHECKING:
    from trimtab.loop.ledger import Ledger


def check_limits(model: str, limits: LimitOptions, price: Price | None) -> None:
    """Refuse a limit that could not be held, before anything is started."""
    if limits.max_usd is not None and price is None:
        raise ConfigurationError(
            f"No price is known for the model {model}, so a limit in USD cannot hold; name a price "
            f"table with {VARIABLE} or set --max-tokens instead."
        )


def build_ledger(session: Session, limits: LimitOptions) -> "Ledger | None":
    """Build the ledger of a session and its sub-agents, if a limit is set.

    What was spent before a resume counts as well.
    """
    if limits.max_tokens is None and limits.max_usd is None:
        return None
    from trimtab.loop.ledger import Allowance, Ledger, Spending

    def spending() -> Spending:
        usage = session.projections.usage
        total = usage.total
        return Spending(
            tokens=(total.input_tokens or 0) + (total.output_tokens or 0) + usage.unsettled[0],
            usd=(total.cost_usd or 0.0) + usage.unsettled[1],
            calls=usage.calls,
            agents={
                agent: ((one.input_tokens or 0) + (one.output_tokens or 0), one.cost_usd or 0.0)
                for agent, one in usage.agents.items()
            },
            dearest=usage.dearest,
        )

    allowance = Allowance(
        tokens=limits.max_tokens, usd=limits.max_usd, in_credits=limits.in_credits
    )
    return Ledger(allowance, spending)
