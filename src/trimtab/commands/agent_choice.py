"""Chooses the agent that a session works as."""

from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.subagent import SubagentDeselected, SubagentSelected
from trimtab.customize.model_families import resolve_model_families

if TYPE_CHECKING:
    from trimtab.contracts.customization import AgentDefinition
    from trimtab.runtime.live import LiveSession

NAMED = ("sdk", "plugin")
"""The sources of agents in folders and plugins that a client names."""


def list_agents(live: "LiveSession") -> "list[AgentDefinition]":
    """Return the agents a client defined and, with discovery, those on disk."""
    options, custom = live.controls.options.customize, live.controls.setup.customizations
    agents = {agent.name: agent for agent in options.agents}
    if custom is None:
        return list(agents.values())
    found = {
        name: agent
        for name, agent in custom.agents.agents.items()
        if options.discover or agent.source in NAMED
    }
    return list({**found, **agents}.values())


async def select_agent(live: "LiveSession", name: str | None) -> "AgentDefinition | None":
    """Work as this agent from the next prompt on; None returns to the default agent.

    Raises `UsageError` if there is no such agent.
    """
    controls = live.controls
    if name is None:
        controls.set_agent(None)
        live.emit(SubagentDeselected())
        return None
    agent = next((agent for agent in list_agents(live) if agent.name == name), None)
    if agent is None:
        raise UsageError(f"Custom agent {name!r} not found; list the agents with `/agent`.")
    if controls.setup.customizations is not None:
        offline = bool(controls.options.offline)
        await resolve_model_families(controls.setup.customizations, agent, offline=offline)
    controls.set_agent(agent.name)
    live.emit(
        SubagentSelected(
            agent_name=agent.name,
            agent_display_name=agent.display_name,
            tools=list(agent.tools or ()),
        )
    )
    return agent
