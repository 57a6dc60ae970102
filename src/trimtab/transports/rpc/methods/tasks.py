"""The tasks of a session: its sub-agents and its commands."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.tool import Assignment
from trimtab.host.client_tasks import Registration, TaskProblem, Update
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import TASK_FAILURES, RpcError

methods = Methods()

MAX_WAIT = 30.0
"""The longest time in seconds that a read of output waits."""
MAX_OUTPUT = 64 * 1024


class TaskId(msgspec.Struct):
    id: str


class Message(msgspec.Struct):
    id: str
    message: str


class StartAgent(msgspec.Struct, rename="camel"):
    agent_type: str
    prompt: str
    name: str = ""
    description: str = ""
    model: str | None = None


class ReadOutput(msgspec.Struct, rename="camel"):
    id: str
    cursor: str | None = None
    wait_ms: float = 0


@methods.on("session.tasks.list")
async def list_tasks(call: Call, params: Nothing) -> JsonObject:
    return {"tasks": [*call.session.live.tasks.describe(), *call.session.client_tasks.list()]}


@methods.on("session.tasks.register", Registration)
async def register(call: Call, params: Registration) -> JsonObject:
    """Add a task that the client works on, or return to one after a new connection."""
    with named_failures():
        return call.session.client_tasks.register(call.peer, params)


class TaskUpdate(msgspec.Struct):
    id: str
    sequence: int
    update: Update


@methods.on("session.tasks.update", TaskUpdate)
async def update_task(call: Call, params: TaskUpdate) -> JsonObject:
    tasks = call.session.client_tasks
    with named_failures():
        return tasks.update(call.peer, params.id, params.sequence, params.update)


@contextmanager
def named_failures() -> Iterator[None]:
    """Answer with the code and the name that the protocol has for a failure of a client's task."""
    try:
        yield
    except TaskProblem as problem:
        data = {**problem.data, "message": problem.message}
        raise RpcError(TASK_FAILURES[problem.name], problem.name, data) from None


@methods.on("trimtab.tasks.list")
async def list_all_tasks(call: Call, params: Nothing) -> JsonObject:
    """Return the main agent, whose id is the session's, and all tasks of the session."""
    tasks = call.session.live.tasks
    every = [tasks.describe_main(), *tasks.describe()]
    return {"tasks": [{"sessionId": call.session.id, **task} for task in every]}


@methods.on("session.tasks.refresh")
async def refresh(call: Call, params: Nothing) -> JsonObject:
    """Do nothing: the list is always current."""
    return {}


@methods.on("session.tasks.waitForPending")
async def wait_for_pending(call: Call, params: Nothing) -> JsonObject:
    """Wait until neither the main agent nor anything in the background works."""
    await call.session.live.tasks.wait_quiet()
    return {}


@methods.on("session.tasks.getCurrentPromotable")
async def get_promotable(call: Call, params: Nothing) -> JsonObject:
    task = call.session.live.tasks.find_promotable()
    return {} if task is None else {"task": task}


@methods.on("session.tasks.promoteCurrentToBackground")
async def promote_current(call: Call, params: Nothing) -> JsonObject:
    tasks = call.session.live.tasks
    task = tasks.find_promotable()
    if task is None or not tasks.promote(task["id"]):
        return {}
    return {"task": tasks.find(task["id"])}


@methods.on("session.tasks.promoteToBackground", TaskId)
async def promote(call: Call, params: TaskId) -> JsonObject:
    return {"promoted": call.session.live.tasks.promote(params.id)}


@methods.on("session.tasks.cancel", TaskId)
async def cancel(call: Call, params: TaskId) -> JsonObject:
    """Begin to end a task; its end follows as events. A client's own task ends at once."""
    task = call.session.client_tasks.find(params.id)
    if task is not None:
        return {"cancelled": await call.session.client_tasks.cancel(call.session.id, task)}
    return {"cancelled": call.session.live.tasks.stop(params.id)}


@methods.on("session.tasks.remove", TaskId)
async def remove(call: Call, params: TaskId) -> JsonObject:
    removed = call.session.live.tasks.remove(params.id)
    return {"removed": removed or call.session.client_tasks.remove(params.id)}


@methods.on("session.tasks.getProgress", TaskId)
async def get_progress(call: Call, params: TaskId) -> JsonObject:
    task = call.session.client_tasks.find(params.id)
    if task is not None:
        return {"progress": task.describe_progress()}
    return {"progress": call.session.live.tasks.progress(params.id)}


@methods.on("session.tasks.readOutput", ReadOutput)
async def read_output(call: Call, params: ReadOutput) -> JsonObject:
    """Return the output of a command after a cursor; wait for some if there is none yet."""
    tasks = call.session.live.tasks
    cursor = params.cursor or "0"
    if not cursor.isdecimal():
        raise UsageError(f"Unknown cursor {cursor!r}; read again without a cursor.")
    left = min(max(0.0, params.wait_ms / 1000), MAX_WAIT)
    while True:
        text, end, exit_code = tasks.read_output(params.id, int(cursor), MAX_OUTPUT)
        if text or exit_code is not None or left <= 0:
            break
        pause = min(left, 0.1)
        left -= pause
        await asyncio.sleep(pause)
    reply: JsonObject = {"text": text, "cursor": str(end)}
    if exit_code is not None and not text:
        reply["exit"] = {"exitCode": exit_code}
    return reply


@methods.on("session.tasks.sendMessage", Message)
async def send_message(call: Call, params: Message) -> JsonObject:
    try:
        call.session.live.tasks.send(params.id, params.message)
    except UsageError as error:
        return {"sent": False, "error": error.message}
    return {"sent": True}


@methods.on("session.tasks.startAgent", StartAgent)
async def start_agent(call: Call, params: StartAgent) -> JsonObject:
    """Start an agent in the background."""
    assignment = Assignment(
        agent_type=params.agent_type,
        prompt=params.prompt,
        description=params.description or params.name,
        name=params.name,
        background=True,
        model=params.model,
    )
    return {"agentId": await call.session.live.tasks.start_agent(assignment)}
