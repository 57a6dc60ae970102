"""Limits on what a session may spend, put in front of everything else in its run."""

from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.provider import Price
from trimtab.contracts.run import Run
from trimtab.loop.processors.compaction import Compaction
from trimtab.providers.prices import VARIABLE
from trimtab.runtime.options import LimitOptions
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


def apply_limits(run: Run, session: Session, limits: LimitOptions, price: Price | None) -> None:
    """Give a run its model's price and, where a limit is set, a budget."""
    run.options = msgspec.structs.replace(run.options, price=price)
    run.purse = None
    if limits.max_tokens is None and limits.max_usd is None:
        return
    set_budget(run, build_ledger(session, limits))


def set_budget(run: Run, ledger: "Ledger", agent: str | None = None) -> None:
    """Have a run spend from a ledger and from nothing else."""
    from trimtab.loop.processors.budget import Budget

    run.purse = ledger
    others = [one for one in run.processors if not isinstance(one, Budget)]
    # Behind the compaction: what is about to be sent is what has to be paid for.
    place = 1 + max(i for i, one in enumerate(others) if isinstance(one, Compaction))
    run.processors = [*others[:place], Budget(ledger, agent), *others[place:]]


def share_limits(run: Run) -> None:
    """Give the agents that work for a run their part of what it may spend, now."""
    from trimtab.loop.ledger import Ledger

    for agent, child in run.children.items():
        if isinstance(run.purse, Ledger):
            set_budget(child, run.purse.slice(agent), agent)
        share_limits(child)


def build_ledger(session: Session, limits: LimitOptions) -> "Ledger":
    """The ledger of a session tree. What was spent before a resume counts as well."""
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
