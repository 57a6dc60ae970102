"""Custom agents, and the customization a session has."""

from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.subagent import SubagentDeselected, SubagentSelected
from trimtab.runtime.customizations import describe_skill
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.hosted import HostedSession
from trimtab.transports.rpc.methods.discovery import describe_instruction

methods = Methods()


class Name(msgspec.Struct):
    name: str


@methods.on("session.agent.list")
async def list_agents(call: Call, params: Nothing) -> JsonObject:
    return {"agents": [_describe(agent) for agent in _agents(call.session)]}


@methods.on("session.agent.reload")
async def reload_agents(call: Call, params: Nothing) -> JsonObject:
    return await list_agents(call, params)


@methods.on("session.agent.getCurrent")
async def get_current(call: Call, params: Nothing) -> JsonObject:
    wanted = call.session.settings.get("agent")
    found = next((one for one in _agents(call.session) if one.get("name") == wanted), None)
    return {"agent": _describe(found) if found else None}


@methods.on("session.agent.select", Name)
async def select(call: Call, params: Name) -> JsonObject:
    """Remembers the choice; its prompt and tools are not applied in this version."""
    found = next((one for one in _agents(call.session) if one.get("name") == params.name), None)
    if found is None:
        raise UsageError(f"There is no agent {params.name!r}; see session.agent.list.")
    call.session.settings["agent"] = params.name
    described = _describe(found)
    call.session.live.emit(
        SubagentSelected(
            agent_name=params.name,
            agent_display_name=described["displayName"],
            tools=list(found.get("tools") or ()),
        )
    )
    return {"agent": described}


@methods.on("session.agent.deselect")
async def deselect(call: Call, params: Nothing) -> JsonObject:
    if call.session.settings.pop("agent", None) is not None:
        call.session.live.emit(SubagentDeselected())
    return {}


@methods.on("session.skills.list")
async def list_skills(call: Call, params: Nothing) -> JsonObject:
    return {"skills": find_skills(call.session)}


@methods.on("session.mcp.list")
async def list_servers(call: Call, params: Nothing) -> JsonObject:
    """MCP servers are not started in this version; those a client named are listed as such."""
    servers = [
        {"name": name, "status": "not_configured", "source": "user"}
        for name in call.session.settings.get("mcp_servers") or ()
    ]
    return {"servers": servers}


@methods.on("session.tasks.list")
async def list_tasks(call: Call, params: Nothing) -> JsonObject:
    return {"tasks": []}


@methods.on("session.plugins.list")
async def list_plugins(call: Call, params: Nothing) -> JsonObject:
    return {"plugins": []}


@methods.on("session.instructions.getSources")
async def get_sources(call: Call, params: Nothing) -> JsonObject:
    custom = call.session.live.controls.place.customizations
    if custom is None:
        return {"sources": []}
    found = custom.instructions.instructions
    return {"sources": [describe_instruction(one, custom) for one in found]}


def find_skills(hosted: HostedSession) -> list[JsonObject]:
    """The skills of a session: those in directories a client named, and discovered ones."""
    custom = hosted.live.controls.place.customizations
    return [describe_skill(skill) for skill in custom.skills.skills.values()] if custom else []


def _agents(hosted: HostedSession) -> list[JsonObject]:
    return list(hosted.settings.get("custom_agents") or ())


def _describe(agent: JsonObject) -> JsonObject:
    name = str(agent.get("name", ""))
    described: dict[str, Any] = {
        "id": name,
        "name": name,
        "displayName": agent.get("displayName") or name,
        "description": agent.get("description") or "",
    }
    for field in ("tools", "model", "skills", "reasoningEffort", "mcpServers"):
        if agent.get(field) is not None:
            described[field] = agent[field]
    return described
