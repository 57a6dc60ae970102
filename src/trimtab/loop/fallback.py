"""Other models to go on with, in the order a person named them; unasked there are none."""

from collections.abc import Sequence

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.session import SessionModelChange, SessionWarning
from trimtab.contracts.provider import Price, Provider
from trimtab.contracts.run import Run

REPLACEABLE = frozenset(
    ("retryable", "overloaded", "rate_limit", "transport", "quota", "not_found")
)
"""Categories of errors that another model or service may not have."""


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    provider: Provider
    model: str
    price: Price | None = None
    prompt_limit: int | None = None


class Fallbacks:
    """The models that are left. A switch is never silent: two events tell it."""

    def __init__(self, models: Sequence[Fallback] = ()) -> None:
        self._models = list(models)

    def switch(self, run: Run, error: ModelError) -> bool:
        """Put the next model in place of the one that failed; False if there is none."""
        if error.category not in REPLACEABLE or not self._models:
            return False
        chosen, before = self._models.pop(0), run.agent.model
        model = msgspec.structs.replace(
            before,
            provider=chosen.provider,
            name=chosen.model,
            price=chosen.price,
            prompt_limit=chosen.prompt_limit,
        )
        run.agent = msgspec.structs.replace(run.agent, model=model)
        run.session.emit(
            SessionWarning(
                warning_type="model_fallback",
                message=f"{before.name} cannot answer ({error.message}); going on with "
                f"{chosen.model}, the next model you named for that.",
            )
        )
        run.session.emit(
            SessionModelChange(previous_model=before.name, new_model=chosen.model, cause="fallback")
        )
        return True
