"""Runs shell commands for the person behind a client."""

import os
import signal
from typing import Literal

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.recorded_commands import run_recorded
from trimtab.transports.rpc.dispatch import Call, Methods
from trimtab.transports.rpc.protocol import Then

methods = Methods()


class Exec(msgspec.Struct):
    command: str
    cwd: str | None = None
    timeout: int | None = None
    """In milliseconds."""


@methods.on("session.shell.exec", Exec)
async def start(call: Call, params: Exec) -> Then:
    """Start a command; its output and its end are sent to the client that asked for it."""
    peer, session_id = call.peer, call.session.id
    early: list[tuple[str, JsonObject]] = []
    replied = False

    def notify(method: str, message: JsonObject) -> None:
        if replied:
            peer.notify(method, {"sessionId": session_id, **message})
        else:
            early.append((method, message))

    def release() -> None:
        nonlocal replied
        replied = True
        for method, message in early:
            notify(method, message)

    process_id = ""

    def on_output(stream: str, text: str) -> None:
        notify("shell.output", {"processId": process_id, "stream": stream, "data": text})

    def on_exit(ended: str, code: int) -> None:
        notify("shell.exit", {"processId": ended, "exitCode": code})

    process_id = await call.session.own_commands.start(
        params.command,
        find_folder(call, params.cwd),
        seconds=params.timeout / 1000 if params.timeout else None,
        on_output=on_output,
        on_exit=on_exit,
    )
    return Then({"processId": process_id}, release)


class Kill(msgspec.Struct, rename="camel"):
    process_id: str
    signal: Literal["SIGTERM", "SIGKILL", "SIGINT"] = "SIGTERM"


@methods.on("session.shell.kill", Kill)
async def kill(call: Call, params: Kill) -> JsonObject:
    number = signal.Signals[params.signal]
    return {"killed": call.session.own_commands.kill(params.process_id, number)}


class Execute(msgspec.Struct, rename="camel"):
    command: str
    request_id: str


@methods.on("session.shell.executeUserRequested", Execute)
async def execute(call: Call, params: Execute) -> JsonObject:
    """Run a command to its end, recorded in the log as a call that the person made."""
    hosted = call.session
    find_folder(call, None)  # it may be gone
    recorded = await run_recorded(
        hosted.live,
        hosted.own_commands,
        params.command,
        request_id=params.request_id,
    )
    reply: JsonObject = {"toolCallId": recorded.call_id, "success": False, "output": ""}
    if (ended := recorded.ended) is not None:
        reply["success"] = ended.exit_code == 0
        reply |= {"output": ended.output, "exitCode": ended.exit_code}
    if recorded.error:
        reply["error"] = recorded.error
    return reply


class Cancel(msgspec.Struct, rename="camel"):
    request_id: str


@methods.on("session.shell.cancelUserRequested", Cancel)
async def cancel(call: Call, params: Cancel) -> JsonObject:
    return {"cancelled": call.session.own_commands.kill(params.request_id)}


def find_folder(call: Call, wanted: str | None) -> str:
    """Return the directory for a command: the session's, or one relative to it."""
    base = call.session.live.controls.options.cwd
    folder = os.path.abspath(os.path.join(base, wanted or ""))
    if not os.path.isdir(folder):
        raise UsageError(f"no such directory: {folder}; set cwd to an existing one.")
    return folder
