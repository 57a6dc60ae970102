"""Shell commands of a person that the log records, and that the model may be told of."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import ToolRunning
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionStart,
    ToolShellOutput,
    ToolUserRequested,
)
from trimtab.contracts.ids import new_id
from trimtab.contracts.run import Prompt
from trimtab.host.calls import describe_end
from trimtab.host.own_commands import Ended, OnOutput, OwnCommands
from trimtab.host.parts import Part, ToolInvocation, UserPrompt
from trimtab.runtime.live import LiveSession

TOOL = "bash"
"""The tool whose call a person's command is recorded as."""
PRIVATE = "private"
"""The argument of a command that the model is not told of."""

_COMMAND = re.compile(r"(!!?)\s*(\S.*)?", re.DOTALL)


def read_command(text: str) -> tuple[str, bool] | None:
    """Return the command in a text, and whether the model is told of it; None if it has none.

    An empty command asks for a whole shell.
    """
    if text.strip() == "$":
        return "", False
    match = _COMMAND.fullmatch(text)
    return None if match is None else ((match[2] or "").strip(), match[1] == "!")


class RecordedCommand(msgspec.Struct, frozen=True):
    """A command that has ended, as the log has it. `error` says why it could not be run."""

    call_id: str
    ended: Ended | None
    error: str = ""


async def run_recorded(
    live: LiveSession,
    commands: OwnCommands,
    command: str,
    *,
    request_id: str,
    shared: bool = True,
    on_output: OnOutput = lambda _stream, _text: None,
) -> RecordedCommand:
    """Run a command to its end, recorded in the log as a call that the person made."""
    call_id, arguments = new_id(), {"command": command} | ({} if shared else {PRIVATE: True})
    live.emit(ToolUserRequested(tool_call_id=call_id, tool_name=TOOL, arguments=arguments))
    live.emit(ToolExecutionStart(tool_call_id=call_id, tool_name=TOOL, arguments=arguments))
    live.emit(ToolRunning(tool_call_id=call_id))
    written = 0

    def publish(stream: str, text: str) -> None:
        nonlocal written
        output = ToolShellOutput(tool_call_id=call_id, text=text, sequence=written, stream=stream)
        live.emit(output, ephemeral=True)
        written += 1
        on_output(stream, text)

    try:
        ended = await commands.run(request_id, command, live.controls.options.cwd, publish)
        recorded = RecordedCommand(call_id, ended, describe_signal(ended))
    except OSError as error:
        recorded = RecordedCommand(call_id, None, f"{error.strerror}: {error.filename}")
    live.emit(complete(recorded))
    return recorded


def describe_signal(ended: Ended) -> str:
    """Return which signal ended a command; empty if none did."""
    return f"The command was {describe_end(ended.exit_code)}." if ended.exit_code < 0 else ""


def complete(recorded: RecordedCommand) -> ToolExecutionComplete:
    """Return the event that records the end of a command."""
    ended = recorded.ended
    return ToolExecutionComplete(
        tool_call_id=recorded.call_id,
        success=ended is not None and ended.exit_code == 0,
        is_user_requested=True,
        result={"content": ended.output if ended is not None else ""},
        error={"message": recorded.error} if recorded.error else None,
        shell_execution=None if ended is None else {"exitCode": ended.exit_code},
    )


def describe_for_model(command: str, ended: Ended) -> str:
    """Return what the model reads of a command."""
    return (
        f"<user_command exit_code={ended.exit_code}>\n"
        f"$ {command}\n{ended.output.rstrip()}\n</user_command>"
    )


def tell_model(prompt: Prompt, told: Sequence[str]) -> Prompt:
    """Return a prompt with what the model reads of commands before it; people see the prompt."""
    text = "\n\n".join((*told, prompt.text))
    return msgspec.structs.replace(prompt, display=prompt.display or prompt.text, text=text)


def find_told(parts: Iterable[Part]) -> list[str]:
    """Return what the model has not read yet of the commands in a log."""
    told: list[str] = []
    for part in parts:
        if isinstance(part, UserPrompt) and not part.text.startswith("/"):
            told = []
        elif isinstance(part, ToolInvocation) and part.by_person and part.ended:
            arguments: JsonObject = part.arguments if isinstance(part.arguments, dict) else {}
            if part.exit_code is not None and not arguments.get(PRIVATE):
                ended = Ended(part.output, part.exit_code)
                told.append(describe_for_model(str(arguments.get("command")), ended))
    return told
