"""Agents, skills and instructions that people put on disk.

This version loads none of them, so there are none to find: the lists are empty and true.
"""

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


@methods.on("agents.discover")
async def discover_agents(call: Call, params: Nothing) -> JsonObject:
    return {"agents": []}


@methods.on("skills.discover")
async def discover_skills(call: Call, params: Nothing) -> JsonObject:
    return {"skills": [], "errors": []}


@methods.on("instructions.discover")
async def discover_instructions(call: Call, params: Nothing) -> JsonObject:
    return {"sources": []}


@methods.on("agents.getDiscoveryPaths")
async def get_agent_paths(call: Call, params: Nothing) -> JsonObject:
    return {"paths": []}


@methods.on("skills.getDiscoveryPaths")
async def get_skill_paths(call: Call, params: Nothing) -> JsonObject:
    return {"paths": []}


@methods.on("instructions.getDiscoveryPaths")
async def get_instruction_paths(call: Call, params: Nothing) -> JsonObject:
    return {"paths": []}
