"""Which model an agent means that names a family of Claude's: the newest that can be reached."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.customization import AgentDefinition, Problem
from trimtab.customize.agents import MODEL_ALIASES

if TYPE_CHECKING:
    from trimtab.customize.customizations import Customizations


async def find_meant_models(
    custom: "Customizations", agent: AgentDefinition, *, offline: bool
) -> None:
    """Ask the services on this machine's list, if an agent names a family and no model."""
    wanted = [
        one for one in agent.models if one in MODEL_ALIASES and one not in custom.meant_models
    ]
    if not wanted:
        return
    from trimtab.models.sources import Sources

    sources = await Sources(custom.env, custom.places.home, offline=offline).survey()
    offers = [offer.choice for source in sources for offer in source.models or ()]
    for alias in wanted:
        if (model := newest(MODEL_ALIASES[alias], offers)) is not None:
            custom.meant_models[alias] = model
        else:
            custom.model_problems += (_missing(agent, alias),)


def newest(family: str, models: Iterable[str]) -> str | None:
    """The model of a family with the highest version; of equals the shorter name."""
    known = [one for one in models if "claude" in one.lower() and family in one.lower()]
    return max(known, key=lambda one: (_version(one), -len(one)), default=None)


def _version(model: str) -> Sequence[int]:
    """The numbers in a name. A date is none: it would be the highest of all versions."""
    numbers = (int(one) for one in re.findall(r"\d+", model.rpartition("/")[2]))
    return [number for number in numbers if number < 1000]


def _missing(agent: AgentDefinition, alias: str) -> Problem:
    family = MODEL_ALIASES[alias].title()
    message = f"no Claude {family} can be reached, so the agent works with the session's model"
    return Problem(message=message, file=agent.path, field="model")
