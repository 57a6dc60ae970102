"""Skills, servers and agents as events and the SDK describe them."""

from typing import TYPE_CHECKING

from trimtab.contracts.customization import AgentDefinition, McpServer, Skill
from trimtab.contracts.mcp import config_source

if TYPE_CHECKING:
    from trimtab.mcp.server import Server


def describe_skill(skill: Skill) -> dict[str, object]:
    """A skill as `session.skills_loaded` and the SDK describe it."""
    described: dict[str, object] = {
        "name": skill.name,
        "description": skill.description,
        "source": skill.origin,
        "userInvocable": skill.user_invocable,
        "enabled": skill.enabled,
        "path": skill.path,
    }
    if skill.argument_hint:
        described["argumentHint"] = skill.argument_hint
    return described


def describe_server(server: McpServer, state: "Server | None") -> dict[str, object]:
    """A server as `session.mcp_servers_loaded` and the SDK describe it.

    One without a state is not used: it was changed after its folder was trusted.
    """
    described: dict[str, object] = {
        "name": server.name,
        "status": state.status if state else "stopped",
        "source": config_source(server),
        "transport": "stdio" if server.type == "local" else server.type,
    }
    if server.display_name:
        described["displayName"] = server.display_name
    if state is None:
        described["error"] = "it was changed or added since its folder was trusted"
    elif state.error:
        described["error"] = state.error
    if state is not None and state.instructions:
        described["serverMetadata"] = {"instructions": state.instructions}
    return described


def describe_agent(agent: AgentDefinition) -> dict[str, object]:
    """An agent as `session.custom_agents_updated` and the SDK describe it."""
    described: dict[str, object] = {
        "id": agent.name,
        "name": agent.alias or agent.name,
        "displayName": agent.display_name,
        "description": agent.description,
        "source": agent.origin,
        "tools": None if agent.tools is None else list(agent.tools),
        "userInvocable": agent.user_invocable,
        "disableModelInvocation": not agent.model_invocable,
    }
    if agent.models:
        described |= {"model": agent.models[0], "models": list(agent.models)}
        described["modelPolicy"] = agent.model_policy
    return described
