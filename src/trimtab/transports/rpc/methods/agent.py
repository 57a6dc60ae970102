"""Custom agents, and the customization a session has."""

import os
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.subagent import SubagentDeselected, SubagentSelected
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.hosted import HostedSession

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
    return {"sources": []}


def find_skills(hosted: HostedSession) -> list[JsonObject]:
    """The skills in the directories a client named: folders with a `SKILL.md`."""
    disabled = hosted.settings.get("disabled_skills") or ()
    found: list[JsonObject] = []
    for directory in hosted.settings.get("skill_directories") or ():
        for folder in (directory, *_folders(directory)):
            path = os.path.join(folder, "SKILL.md")
            if os.path.isfile(path):
                name, description = _read_skill(path)
                found.append(
                    {
                        "name": name,
                        "description": description,
                        "source": "custom",
                        "userInvocable": True,
                        "enabled": name not in disabled,
                        "path": path,
                    }
                )
    return found


def _folders(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir())
    except OSError:
        return []


def _read_skill(path: str) -> tuple[str, str]:
    """Name and description of a skill from the head of its file."""
    name, description = os.path.basename(os.path.dirname(path)), ""
    with open(path, encoding="utf-8", errors="replace") as file:
        head = file.read(64 * 1024)
    if head.startswith("---"):
        for line in head.split("\n---", 1)[0].split("\n"):
            key, _, value = line.partition(":")
            if key.strip() == "name" and value.strip():
                name = value.strip().strip("\"'")
            elif key.strip() == "description":
                description = value.strip().strip("\"'")
    return name, description


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
