"""The setting `subagents`: limits for sub-agents, and the models they use."""

from collections.abc import Mapping
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
MAX_MESSAGES = 500
"""The number of messages that agents may send each other during the work on one prompt."""
VARIABLES = {
    "max_concurrency": "COPILOT_SUBAGENT_MAX_CONCURRENT",
    "max_depth": "COPILOT_SUBAGENT_MAX_DEPTH",
}
"""Environment variables that override the setting."""


class PoolSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The setting `subagents`. `agents` maps the names of agents to their models and efforts."""

    max_concurrency: int = MAX_CONCURRENCY
    max_depth: int = MAX_DEPTH
    max_agents: int = MAX_AGENTS
    max_messages: int = MAX_MESSAGES
    disabled_subagents: tuple[str, ...] = ()
    agents: dict[str, dict[str, Any]] = {}


def read_settings(custom: Customizations | None) -> PoolSettings:
    """Return the setting `subagents`, or the defaults, with the limits of the environment."""
    if custom is None:
        return PoolSettings()
    settings = PoolSettings()
    if custom.has_settings and "subagents" in custom.settings.values:
        try:
            settings = msgspec.convert(custom.settings.values["subagents"], PoolSettings)
        except msgspec.ValidationError as error:
            raise ConfigurationError(
                f"The setting `subagents` is not valid: {error}; correct it."
            ) from None
    limits = {
        field: read_limit(custom.env, name)
        for field, name in VARIABLES.items()
        if name in custom.env
    }
    return msgspec.structs.replace(settings, **limits) if limits else settings


def read_limit(env: Mapping[str, str], name: str) -> int:
    """Return the number in an environment variable. Raises `ConfigurationError`."""
    text = env[name].strip()
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is {text!r}; set it to a whole number, or unset it.")
    return int(text)
