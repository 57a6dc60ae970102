"""Agents and instructions of a session."""

import msgspec

from trimtab.commands.agent_choice import list_agents as find_agents
from trimtab.commands.agent_choice import select_agent
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.customize.describe import describe_agent
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.methods.discovery import describe_instruction

methods = Methods()
KEPT_PARTS = {
    "hooks": "a session keeps its hooks; a warning reports changes",
    "extensions": "there are none",
    "repositoryContext": "it is read with each prompt",
}
"""Parts of a session that are not read again, and why."""


class Name(msgspec.Struct):
    name: str


@methods.on("session.agent.list")
async def list_agents(call: Call, params: Nothing) -> JsonObject:
    return {"agents": [describe_info(agent) for agent in find_agents(call.session.live)]}


@methods.on("session.agent.reload")
async def reload_agents(call: Call, params: Nothing) -> JsonObject:
    call.session.live.controls.reload()
    return await list_agents(call, params)


@methods.on("session.agent.getCurrent")
async def get_current(call: Call, params: Nothing) -> JsonObject:
    custom = call.session.live.controls.setup.customizations
    agent = custom.agent if custom else None
    return {"agent": describe_info(agent) if agent else None}


@methods.on("session.agent.select", Name)
async def select(call: Call, params: Name) -> JsonObject:
    """Work as this agent from the next prompt on."""
    agent = await select_agent(call.session.live, params.name)
    assert agent is not None
    call.session.settings["agent"] = params.name
    return {"agent": describe_info(agent)}


@methods.on("session.agent.deselect")
async def deselect(call: Call, params: Nothing) -> JsonObject:
    if call.session.settings.pop("agent", None) is not None:
        await select_agent(call.session.live, None)
    return {}


class Prompt(msgspec.Struct):
    id: str
    prompt: str


@methods.on("session.agent.setPrompt", Prompt)
async def set_prompt(call: Call, params: Prompt) -> JsonObject:
    """Give an agent another prompt in this session, for the tasks it is given from now on."""
    if params.id == "general-purpose":
        raise UsageError(
            "Built-in agent 'general-purpose' does not have an authored prompt to override; "
            "define an agent with another name."
        )
    custom = call.session.live.controls.setup.customizations
    if custom is None:
        raise UsageError(f"Agent {params.id!r} is not available in this session; name another.")
    custom.set_prompt(params.id, params.prompt)
    return {}


@methods.on("session.instructions.reload")
async def reload_instructions(call: Call, params: Nothing) -> JsonObject:
    call.session.live.controls.reload()
    return await get_sources(call, params)


@methods.on("session.customizations.reload")
async def reload_customizations(call: Call, params: Nothing) -> JsonObject:
    """Read everything but the hooks again; MCP servers are connected anew."""
    controls = call.session.live.controls
    controls.reload()
    await controls.servers.reload()
    custom = controls.setup.customizations
    problems = custom.skills.problems if custom is not None else ()
    reloaded = ("instructions", "plugins", "skills", "agents", "mcp")
    return {
        "outcomes": [
            *({"subsystem": name, "status": "reloaded"} for name in reloaded),
            *(
                {"subsystem": name, "status": "skipped", "detail": reason}
                for name, reason in KEPT_PARTS.items()
            ),
        ],
        "warnings": [problem.sentence for problem in problems if problem.note],
        "errors": [problem.sentence for problem in problems if not problem.note],
    }


@methods.on("session.instructions.getSources")
async def get_sources(call: Call, params: Nothing) -> JsonObject:
    custom = call.session.live.controls.setup.customizations
    if custom is None:
        return {"sources": []}
    found = custom.instructions.instructions
    return {"sources": [describe_instruction(instruction, custom) for instruction in found]}


def describe_info(agent: AgentDefinition) -> JsonObject:
    """Return an agent in the form of the SDK's session calls."""
    described: JsonObject = {
        **describe_agent(agent),
        "skills": list(agent.skills) or None,
        "reasoningEffort": agent.effort,
        "mcpServers": dict(agent.mcp_servers) or None,
        "path": agent.path or None,
    }
    return {name: value for name, value in described.items() if value is not None}
