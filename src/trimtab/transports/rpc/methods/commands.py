"""Slash commands: built-in ones, and those that clients registered."""

import msgspec

from trimtab.commands.table import COMMANDS
from trimtab.commands.table import list_commands as offered_commands
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.question import CommandCompleted, CommandExecute
from trimtab.contracts.ids import new_id
from trimtab.contracts.run import COMMAND, Prompt
from trimtab.host.requests import handle_request
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Execute(msgspec.Struct, rename="camel"):
    command_name: str
    args: str = ""


class HandlePending(msgspec.Struct, rename="camel"):
    request_id: str
    error: str | None = None


@methods.on("session.commands.list")
async def list_commands(call: Call, params: Nothing) -> JsonObject:
    builtin = [
        {
            "name": command.name,
            "description": command.help,
            "kind": "builtin",
            "allowDuringAgentExecution": command.while_busy,
        }
        for command in offered_commands(call.session.live)
        if command.handler is not None or command.is_prompt
    ]
    return {
        "commands": builtin
        + [
            {
                "name": command.get("name"),
                "description": command.get("description") or "",
                "kind": "client",
                "allowDuringAgentExecution": True,
            }
            for command in call.session.commands
        ]
    }


@methods.on("commands.list")
async def list_builtin(call: Call, params: Nothing) -> JsonObject:
    """List the commands that a new session has, before there is one."""
    return {
        "commands": [
            {
                "name": command.name,
                "description": command.help,
                "kind": "builtin",
                "allowDuringAgentExecution": command.while_busy,
                **({"input": {"hint": command.arguments}} if command.arguments else {}),
            }
            for command in COMMANDS.values()
            if command.handler is not None and not command.setting
        ]
    }


class Invoke(msgspec.Struct):
    name: str
    input: str | None = None


@methods.on("session.commands.invoke", Invoke)
async def invoke(call: Call, params: Invoke) -> JsonObject:
    """Run a built-in command and return its text, or the prompt it stands for."""
    live, name = call.session.live, params.name.lstrip("/").lower()
    text = f"/{name} {params.input or ''}".rstrip()
    answer = await live.run_command(text)
    if answer is None and (prompt := await live.expand_command(text)) is not None:
        return {"kind": "agent-prompt", "prompt": prompt, "displayPrompt": text}
    if answer is None:
        raise UsageError(f"Unknown command: {name}; see session.commands.list.")
    return {"kind": "text", "text": answer}


@methods.on("session.commands.execute", Execute)
async def execute(call: Call, params: Execute) -> JsonObject:
    """Have the client that registered a command run it, and wait for it."""
    hosted = call.session
    if all(command.get("name") != params.command_name for command in hosted.commands):
        return {"error": f"No client found for command: {params.command_name}"}
    request = CommandExecute(
        request_id=new_id(),
        command=f"/{params.command_name} {params.args}".rstrip(),
        command_name=params.command_name,
        args=params.args,
    )
    try:
        error = await hosted.ask_by_event(request)
    finally:
        hosted.live.emit(CommandCompleted(request_id=request.request_id))
    return {"error": error} if error else {}


@methods.on("session.commands.handlePendingCommand", HandlePending)
async def handle_pending(call: Call, params: HandlePending) -> JsonObject:
    """Take the outcome of a command; one that nobody waits for any more is accepted too."""
    call.session.questions.answer(params.request_id, params.error)
    return {"success": True}


class Enqueue(msgspec.Struct, rename="camel"):
    command: str
    display_text: str | None = None


@methods.on("session.commands.enqueue", Enqueue)
async def enqueue(call: Call, params: Enqueue) -> JsonObject:
    """Queue a slash command behind the prompts that wait."""
    text = params.command.strip()
    if not text.startswith("/") or len(text) < 2:
        return {"queued": False}
    if not call.session.live.has_feature("QUEUED_COMMANDS"):
        return {"queued": False}
    prompt = Prompt(text=text, display=params.display_text, source=COMMAND)
    return {"queued": True, "queueId": handle_request(call.session.live, prompt).id}


class QueuedResult(msgspec.Struct, rename="camel"):
    handled: bool
    stop_processing_queue: bool = False


class RespondToQueued(msgspec.Struct, rename="camel"):
    request_id: str
    result: QueuedResult


@methods.on("session.commands.respondToQueuedCommand", RespondToQueued)
async def respond_to_queued(call: Call, params: RespondToQueued) -> JsonObject:
    """Say whether the client has run a queued command; if not, the built-in one runs."""
    answered = call.session.questions.answer(params.request_id, params.result.handled)
    if answered and params.result.stop_processing_queue:
        call.session.live.inbox.hold()
    return {"success": answered}
