"""The setting `subagents`: limits for sub-agents, and the models they use."""

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
    """The setting `subagents`. `agents` maps the names of agents to their models and efforts."""

    max_concurrency: int = MAX_CONCURRENCY
    max_depth: int = MAX_DEPTH
    max_agents: int = MAX_AGENTS
    disabled_subagents: tuple[str, ...] = ()
    agents: dict[str, dict[str, Any]] = {}


def read_settings(custom: Customizations | None) -> PoolSettings:
    """Return the setting `subagents`, or the defaults."""
    if custom is None or not custom.has_settings or "subagents" not in custom.settings.values:
        return PoolSettings()
    try:
        return msgspec.convert(custom.settings.values["subagents"], PoolSettings)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"The setting `subagents` is not valid: {error}; correct it."
        ) from None
