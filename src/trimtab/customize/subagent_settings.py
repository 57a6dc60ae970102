"""The setting `subagents`: how many sub-agents may work, how deep, and with which models."""

from typing import Any

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.customize.customizations import Customizations

MAX_DEPTH = 4
"""The default maximum depth of sub-agents below the main agent."""
MAX_CONCURRENCY = 8
"""The default maximum number of sub-agents at work at once."""
MAX_AGENTS = 200
"""The number of agents that the work on one prompt may start, at all depths together."""


class PoolSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The setting `subagents`. `agents` gives models and efforts by the names of agents."""

    max_concurrency: int = MAX_CONCURRENCY
    max_depth: int = MAX_DEPTH
    max_agents: int = MAX_AGENTS
    disabled_subagents: tuple[str, ...] = ()
    agents: dict[str, dict[str, Any]] = {}


def read_settings(custom: Customizations | None) -> PoolSettings:
    """The setting `subagents`, where there is one."""
    if custom is None or not custom.has_settings or "subagents" not in custom.settings.values:
        return PoolSettings()
    try:
        return msgspec.convert(custom.settings.values["subagents"], PoolSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `subagents` is not valid: {error}; correct it."
        ) from None
