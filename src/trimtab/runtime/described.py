"""Skills, servers and agents as events and the SDK describe them."""

from trimtab.contracts.customization import AgentDefinition, McpServer, Skill


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


_SERVER_SOURCES = {"repository": "workspace", "plugin": "plugin"}
NOT_CONNECTED = "connecting to MCP servers is not part of this version yet"


def server_source(server: McpServer) -> str:
    """Where a server comes from, in Copilot's words."""
    return _SERVER_SOURCES.get(server.source, "user")


def describe_server(server: McpServer) -> dict[str, object]:
    """A server as `session.mcp_servers_loaded` describes it."""
    described: dict[str, object] = {
        "name": server.name,
        "status": "failed" if server.enabled else "disabled",
        "source": server_source(server),
    }
    return described | {"error": NOT_CONNECTED} if server.enabled else described


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
