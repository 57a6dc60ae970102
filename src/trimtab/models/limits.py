"""Limits on the tokens and money of a session: checks them and builds its ledger."""

from typing import TYPE_CHECKING

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import LimitOptions
from trimtab.contracts.provider import Price
from trimtab.providers.prices import VARIABLE
from trimtab.session.session import Session

if TYPE_CHECKING:
    from trimtab.contracts.agent import CallBudget
    from trimtab.loop.ledger import AskLimit, Ledger


def check_limits(model: str, limits: LimitOptions, price: Price | None) -> None:
    """Raise `ConfigurationError` if a limit could not be enforced for this model."""
    if limits.max_usd is not None and price is None:
        raise ConfigurationError(
            f"No price is known for the model {model}, so a limit in USD cannot be enforced; name "
            f"a price table with {VARIABLE} or set --max-tokens instead."
        )


def change_ledger(
    current: "CallBudget | None", session: Session, limits: LimitOptions, ask: "AskLimit | None"
) -> "Ledger | None":
    """Return the ledger for other limits. The one in use is changed, so that calls that wait for
    a decision about the limits see it.
    """
    from trimtab.loop.ledger import Allowance, Ledger

    ledger = build_ledger(session, limits, ask)
    if not isinstance(current, Ledger):
        return ledger
    current.allowance = ledger.allowance if ledger is not None else Allowance()
    return current if ledger is not None else None


def build_ledger(
    session: Session, limits: LimitOptions, ask: "AskLimit | None" = None
) -> "Ledger | None":
    """Build the ledger of a session and its sub-agents; None if no limit is set.

    Usage from before a resume counts. `ask` is called when a limit in AI credits is reached.
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
                agent: ((spent.input_tokens or 0) + (spent.output_tokens or 0), spent.cost_usd or 0)
                for agent, spent in usage.agents.items()
            },
            dearest=usage.dearest,
        )

    allowance = Allowance(
        tokens=limits.max_tokens, usd=limits.max_usd, in_credits=limits.in_credits
    )
    ledger = Ledger(allowance, spending)
    ledger.ask_limit = ask
    return ledger
