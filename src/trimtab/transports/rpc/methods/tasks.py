"""Sub-agents as tasks. None runs in the background."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class TaskId(msgspec.Struct):
    id: str


class StartAgent(msgspec.Struct, rename="camel"):
    agent_type: str


@methods.on("session.tasks.list")
async def list_tasks(call: Call, params: Nothing) -> JsonObject:
    return {"tasks": call.session.live.controls.describe_agents()}


@methods.on("session.tasks.refresh")
async def refresh(call: Call, params: Nothing) -> JsonObject:
    return {}


@methods.on("session.tasks.waitForPending")
async def wait_for_pending(call: Call, params: Nothing) -> JsonObject:
    """Do nothing: no sub-agent works while the main agent is idle."""
    return {}


@methods.on("session.tasks.getCurrentPromotable")
async def get_promotable(call: Call, params: Nothing) -> JsonObject:
    return {}


@methods.on("session.tasks.promoteCurrentToBackground")
async def promote_current(call: Call, params: Nothing) -> JsonObject:
    return {}


@methods.on("session.tasks.promoteToBackground", TaskId)
async def promote(call: Call, params: TaskId) -> JsonObject:
    return {"promoted": False}


@methods.on("session.tasks.cancel", TaskId)
async def cancel(call: Call, params: TaskId) -> JsonObject:
    return {"cancelled": call.session.live.controls.cancel_agent(params.id)}


@methods.on("session.tasks.remove", TaskId)
async def remove(call: Call, params: TaskId) -> JsonObject:
    """Return False: tasks leave the list when they end."""
    return {"removed": False}


@methods.on("session.tasks.getProgress", TaskId)
async def get_progress(call: Call, params: TaskId) -> JsonObject:
    return {"progress": None}


@methods.on("session.tasks.sendMessage", TaskId)
async def send_message(call: Call, params: TaskId) -> JsonObject:
    return {"sent": False, "error": f"No agent with the id {params.id!r} accepts messages."}


@methods.on("session.tasks.startAgent", StartAgent)
async def start_agent(call: Call, params: StartAgent) -> JsonObject:
    raise UsageError(
        f"The agent {params.agent_type!r} cannot be started in the background in this version; "
        "have the model start it with the task tool, or select it for the session."
    )
