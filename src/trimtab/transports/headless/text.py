"""The answer as text for a person: answer on stdout, what the agent does on stderr."""

from typing import Any

import msgspec

from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantTurnRetry,
)
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.model import ModelCallStart
from trimtab.contracts.events.own import LeftOut
from trimtab.contracts.events.session import SessionError, SessionInfo, SessionWarning
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.text import neutralise
from trimtab.transports.headless.output import Output

_SHOWN_ARGUMENT = ("command", "path", "pattern", "url", "query", "summary", "shellId")


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How much to show: `silent` leaves only the answer, `colour` marks what is not the answer."""

    silent: bool = False
    colour: bool = False
    progress: bool = False

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.colour else text

    def red(self, text: str) -> str:
        return f"\x1b[31m{text}\x1b[0m" if self.colour else text


class TextOutput:
    """The `--output-format text` face of a run. Foreign text is neutralised before it is shown."""

    def __init__(self, answer: Output, notes: Output, style: Style) -> None:
        self._answer = answer
        self._notes = notes
        self._style = style
        self._streamed: set[str] = set()
        self._at_line_start = True
        self._progress_shown = False
        self._told_error = False

    def on_event(self, event: Event, line: bytes) -> None:
        if event.agent_id is not None:
            return
        match event.data:
            case AssistantMessageDelta(message_id=message_id, delta_content=text):
                self._streamed.add(message_id)
                self._say(text)
            case AssistantMessage(message_id=message_id, content=text):
                if message_id not in self._streamed:
                    self._say(text)
                self._end_line()
            case ModelCallStart():
                self._show_progress("thinking")
            case data:
                self._show_note(data)

    def _show_note(self, data: object) -> None:
        style = self._style
        match data:
            case ToolExecutionStart() as start:
                self._note(style.dim(f"● {describe_call(start)}"))
                self._show_progress("working")
            case ToolExecutionComplete(success=False, error=error):
                self._note(style.red(f"  ✗ {_first_line((error or {}).get('message'))}"))
            case AssistantTurnRetry(reason=reason):
                self._note(style.dim(f"… {_first_line(reason)}"))
            case SessionInfo(info_type="command", message=message):
                self._say(message + "\n")
            case SessionWarning(message=message) | SessionInfo(message=message):
                self._note(style.dim(f"! {_first_line(message)}"))
            case LeftOut(message=message):
                self._note(style.dim(f"! {_first_line(message, 1000)}"))
            case SessionError(message=message):
                self._told_error = True
                self._note(style.red(f"Error: {_first_line(message, 1000)}"), always=True)

    def on_result(self, result: JsonObject) -> None:
        self._end_line()
        self._clear_progress()
        message = (result.get("error") or {}).get("message")
        if message and not (self._told_error and result["stopReason"] == "error"):
            self._note(self._style.red(f"{message}"), always=True)
        self._note(self._style.dim(describe_result(result)))

    def _say(self, text: str) -> None:
        if text:
            self._clear_progress()
            shown = neutralise(text)
            self._answer.write(shown.encode("utf-8", "replace"))
            self._at_line_start = shown.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._answer.write(b"\n")
            self._at_line_start = True

    def _note(self, text: str, *, always: bool = False) -> None:
        if always or not self._style.silent:
            self._end_line()
            self._clear_progress()
            self._notes.write(text.encode("utf-8", "replace") + b"\n")

    def _show_progress(self, what: str) -> None:
        if self._style.progress and not self._style.silent:
            self._clear_progress()
            self._notes.write(self._style.dim(f"  {what} …").encode())
            self._progress_shown = True

    def _clear_progress(self) -> None:
        if self._progress_shown:
            self._notes.write(b"\r\x1b[2K")
            self._progress_shown = False


def describe_call(start: ToolExecutionStart) -> str:
    """A tool call in one short line."""
    arguments: Any = start.arguments
    shown = ""
    if isinstance(arguments, dict):
        shown = next((str(arguments[key]) for key in _SHOWN_ARGUMENT if arguments.get(key)), "")
    return f"{neutralise(start.tool_name)} {_first_line(shown)}".rstrip()


def describe_result(result: JsonObject) -> str:
    """The statistics line."""
    usage = result["usage"]
    tokens = usage["tokens"]
    seconds = usage["sessionDurationMs"] / 1000
    parts = [f"{seconds:.1f} s", f"{usage['modelCalls']} model calls"]
    if tokens["input"] is not None:
        parts.append(f"{tokens['input']:,} tokens in, {tokens['output'] or 0:,} out")
    changes = usage["codeChanges"]
    if changes["filesModified"]:
        parts.append(
            f"{len(changes['filesModified'])} files, "
            f"+{changes['linesAdded']} -{changes['linesRemoved']} lines"
        )
    if result["permissionDenials"]:
        parts.append(f"{result['permissionDenials']} denied")
    if result["sessionId"]:
        parts.append(f"session {result['sessionId']}")
    return " · ".join(parts)


def _first_line(text: object, limit: int = 160) -> str:
    line = neutralise(str(text or "")).split("\n", 1)[0]
    return line if len(line) <= limit else line[: limit - 1] + "…"
