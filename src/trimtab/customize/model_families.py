"""Resolves names of Claude model families, such as `sonnet`, to the newest available model."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.customization import AgentDefinition, Problem
from trimtab.customize.agents import MODEL_ALIASES
from trimtab.models.sources import Sources
from trimtab.providers.names import same_model

if TYPE_CHECKING:
    from trimtab.customize.customizations import Customizations


async def resolve_model_families(
    custom: "Customizations", agent: AgentDefinition, *, offline: bool
) -> None:
    """Store the models for the families that an agent names. Asks the configured services."""
    wanted = [
        model
        for model in agent.models
        if model in MODEL_ALIASES and model not in custom.family_models
    ]
    if not wanted:
        return
    sources = await Sources(custom.env, custom.places.home, offline=offline).survey()
    offers = [offer.choice for source in sources for offer in source.models or ()]
    for alias in wanted:
        if (model := newest(MODEL_ALIASES[alias], offers)) is not None:
            custom.family_models[alias] = model
        else:
            custom.model_problems += (_missing(agent, alias),)


SMALL = {"claude": "haiku", "gpt": "mini", "gemini": "flash"}
"""The small models of a vendor, by the first word of its models' names."""


def find_at_service(wanted: str, session_model: str, listed: Sequence[str]) -> str | None:
    """Return the model of a service that a built-in agent uses in place of the one it names.

    That is the model itself, else the newest of its family, else, if it is a small one, a small
    model of the vendor of the session's model. None means the session's model.
    """
    for model in listed:
        if same_model(wanted, model):
            return model
    family = next((name for name in set(MODEL_ALIASES.values()) if name in wanted), "")
    if family and (found := newest(family, listed)) is not None:
        return found
    if family != SMALL["claude"]:
        return None
    name = session_model.rpartition("/")[2].lower()
    vendor = next((vendor for vendor in SMALL if name.startswith(vendor)), None)
    if vendor is None or SMALL[vendor] in name:
        return None
    small = [
        model
        for model in listed
        if vendor in model.lower() and SMALL[vendor] in model.lower().replace("-", " ").split()
    ]
    return max(small, key=lambda model: (_version(model), -len(model)), default=None)


def newest(family: str, models: Iterable[str]) -> str | None:
    """Return the model of a family with the highest version; of equals, the shorter name."""
    known = [model for model in models if "claude" in model.lower() and family in model.lower()]
    return max(known, key=lambda model: (_version(model), -len(model)), default=None)


def _version(model: str) -> Sequence[int]:
    """Return the numbers in a name, except dates, which would exceed every version."""
    numbers = (int(digits) for digits in re.findall(r"\d+", model.rpartition("/")[2]))
    return [number for number in numbers if number < 1000]


def _missing(agent: AgentDefinition, alias: str) -> Problem:
    family = MODEL_ALIASES[alias].title()
    message = f"no Claude {family} is available, so the agent uses the session's model"
    return Problem(message=message, file=agent.path, field="model")
