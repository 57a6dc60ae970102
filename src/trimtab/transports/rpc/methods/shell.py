"""Runs shell commands for the person behind a client."""

import os
import signal
from typing import Literal

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import ToolRunning
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionStart,
    ToolShellOutput,
    ToolUserRequested,
)
from trimtab.contracts.ids import new_id
from trimtab.transports.rpc.dispatch import Call, Methods
from trimtab.transports.rpc.protocol import Then

methods = Methods()

TOOL = "bash"
"""The tool whose call a person's command is recorded as."""


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
    hosted, call_id = call.session, new_id()
    live, arguments = hosted.live, {"command": params.command}
    folder = find_folder(call, None)
    live.emit(ToolUserRequested(tool_call_id=call_id, tool_name=TOOL, arguments=arguments))
    live.emit(ToolExecutionStart(tool_call_id=call_id, tool_name=TOOL, arguments=arguments))
    live.emit(ToolRunning(tool_call_id=call_id))
    written = 0

    def on_output(stream: str, text: str) -> None:
        nonlocal written
        output = ToolShellOutput(tool_call_id=call_id, text=text, sequence=written, stream=stream)
        live.emit(output, ephemeral=True)
        written += 1

    reply: JsonObject = {"toolCallId": call_id}
    try:
        ended = await hosted.own_commands.run(params.request_id, params.command, folder, on_output)
    except OSError as error:
        reply |= {"success": False, "output": "", "error": f"{error.strerror}: {error.filename}"}
    else:
        reply |= {
            "success": ended.exit_code == 0,
            "output": ended.output,
            "exitCode": ended.exit_code,
        }
        if ended.exit_code < 0:
            reply["error"] = f"The command was ended by {signal.Signals(-ended.exit_code).name}."
    live.emit(
        ToolExecutionComplete(
            tool_call_id=call_id,
            success=reply["success"],
            is_user_requested=True,
            result={"content": reply["output"]},
            error={"message": reply["error"]} if "error" in reply else None,
        )
    )
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
