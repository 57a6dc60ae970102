"""Shows a run as text: the answer on standard output, the agent's work on standard error."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from trimtab.contracts.events.assistant import (
    AssistantIdle,
    AssistantMessage,
    AssistantMessageDelta,
    AssistantTurnRetry,
)
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.model import ModelCallStart
from trimtab.contracts.events.own import LeftOut, PullRequestOpened, ToolRunning
from trimtab.contracts.events.session import SessionError, SessionInfo, SessionWarning
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionStart,
    ToolUserRequested,
)
from trimtab.contracts.text import count, neutralise, show_arguments

MAX_SENTENCE = 1000
"""Characters of a message. Its end says what to do, so it is rarely cut."""
QUESTIONS = ("ask_user", "exit_plan_mode")
"""Tools whose question is shown instead of a line for the call."""
WORKSPACE_CHANGED = "trimtab.workspace_changed"
"""Named here, since its struct is loaded when something changes."""
LAST_LINES = 5
"""Lines of a failing command's output that are shown."""


class Writer(Protocol):
    """Takes bytes: an `Output`, or a text that is being put together."""

    def write(self, data: bytes, /) -> object: ...


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """`silent` shows only the answer; `colour` dims everything else; `progress` shows activity.

    If `append_only`, no row is written over: activity is a line of its own.
    """

    silent: bool = False
    colour: bool = False
    progress: bool = False
    append_only: bool = False

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.colour else text

    def red(self, text: str) -> str:
        return f"\x1b[31m{text}\x1b[0m" if self.colour else text


class TextOutput:
    """Prints a run for `--output-format text`. Foreign text is neutralised."""

    def __init__(self, answer: Writer, notes: Writer, style: Style) -> None:
        self._answer = answer
        self._notes = notes
        self.style = style
        self._streamed: set[str] = set()
        self._at_line_start = True
        self._progress = ""
        self._told: set[str] = set()
        self._held: dict[str, str] = {}
        """The lines of calls whose permission is not decided."""
        self._requested: set[str] = set()
        """Ids of calls that a person asked for."""
        self._calls: dict[str, str] = {}
        self._last_call = ""
        self.before_output: Callable[[], None] = lambda: None
        """Called before anything is written, for another writer to the same screen."""

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
            case AssistantIdle():
                self._clear_progress()
            case ModelCallStart():
                self.before_output()
                self.show_progress("thinking")
            case ToolUserRequested(tool_call_id=call_id):
                self._requested.add(call_id)
            case ToolExecutionStart() | ToolRunning() | ToolExecutionComplete() as data:
                self._show_work(data)
            case data:
                self._show_note(event.type, data)

    def _show_work(self, data: ToolExecutionStart | ToolRunning | ToolExecutionComplete) -> None:
        """Show a call once it runs, or has ended; its line is held back until then."""
        if isinstance(data, ToolExecutionStart):
            by_person = data.tool_call_id in self._requested and data.model is None
            if data.tool_name not in QUESTIONS and not by_person:
                self._held[data.tool_call_id] = describe_call(data)
            return
        call = data.tool_call_id
        if (line := self._held.pop(call, None)) is not None:
            self._calls[call], self._last_call = line, call
            self._note(self.style.dim(f"● {line}"))
            if not self.style.append_only:
                self.show_progress("working")
        if isinstance(data, ToolExecutionComplete) and not data.is_user_requested:
            self._show_failure(data)

    def _show_note(self, wire_name: str, data: Any) -> None:
        style = self.style
        match data:
            case AssistantTurnRetry(reason=reason):
                self._note(style.dim(f"… {_first_line(reason)}"))
            case SessionInfo(info_type="command", message=message):
                self._say(message + "\n")
            case (
                SessionWarning(message=message)
                | SessionInfo(message=message)
                | LeftOut(message=message)
            ):
                self._note(style.dim(f"! {_first_line(message, MAX_SENTENCE)}"))
                if not style.silent:
                    self._told.add(message)
            case SessionError(message=message):
                self._told.add(message)
                self._note(style.red(f"Error: {_first_line(message, MAX_SENTENCE)}"), always=True)
            case PullRequestOpened(url=url):
                self._note(style.dim(f"! Pull request: {_first_line(url)}"))
            case _ if wire_name == WORKSPACE_CHANGED and data.reason == "person":
                self._note(style.dim(f"! {count(data.count, 'file')} changed by others."))

    def _show_failure(self, complete: ToolExecutionComplete) -> None:
        """Show why a call failed: the error, or exit code, duration and last output."""
        call = complete.tool_call_id
        description = self._calls.pop(call, "")
        lines = describe_failure(complete)
        if not lines:
            return
        named = "" if call == self._last_call or not description else f"{description}: "
        self._note(self.style.red(f"  ✗ {named}{lines[0]}"))
        for line in lines[1:]:
            self._note(self.style.dim(f"    {line}"))

    def on_result(self, result: JsonObject) -> None:
        self._end_line()
        self._clear_progress()
        message = (result.get("error") or {}).get("message")
        if message and not self.has_told(message):
            self._note(self.style.red(f"{message}"), always=True)
        self._note(self.style.dim(describe_result(result)))

    def has_told(self, message: str) -> bool:
        """Return True if an event has shown this message before."""
        return message in self._told

    def tidy(self) -> str:
        """End the last row so that another writer can begin; return the progress shown there."""
        self._end_line()
        shown = self._progress
        self._clear_progress()
        return shown

    def show_progress(self, activity: str) -> None:
        """Show the agent's activity until something else is written."""
        if activity and self.style.progress and not self.style.silent:
            self._clear_progress()
            shown = self.style.dim(f"  {activity} …")
            if self.style.append_only:
                self._end_line()
                self._notes.write(f"{shown}\n".encode())
                return
            self._notes.write(shown.encode())
            self._progress = activity

    def _say(self, text: str) -> None:
        if text:
            self.before_output()
            self._clear_progress()
            shown = neutralise(text)
            self._answer.write(shown.encode("utf-8", "replace"))
            self._at_line_start = shown.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._answer.write(b"\n")
            self._at_line_start = True

    def _note(self, text: str, *, always: bool = False) -> None:
        if always or not self.style.silent:
            self.before_output()
            self.tidy()
            self._notes.write(text.encode("utf-8", "replace") + b"\n")

    def _clear_progress(self) -> None:
        if self._progress:
            self._notes.write(b"\r\x1b[2K")
            self._progress = ""


def describe_call(start: ToolExecutionStart) -> str:
    """Return a tool call as one short line."""
    shown = show_arguments(start.arguments)
    return f"{neutralise(start.tool_name)} {_first_line(shown)}".rstrip()


def describe_failure(complete: ToolExecutionComplete) -> list[str]:
    """Return why a call failed, or its command's exit code and last output; else nothing."""
    if not complete.success:
        return [_first_line((complete.error or {}).get("message"), MAX_SENTENCE)]
    ended = complete.shell_execution or {}
    if not ended.get("exitCode"):
        return []
    output = str((complete.result or {}).get("content") or "").rpartition("\n")[0]
    lines = [_first_line(line) for line in output.split("\n") if line.strip()]
    seconds = ended.get("durationMs", 0) / 1000
    return [f"exit code {ended['exitCode']} after {seconds:.1f} s", *lines[-LAST_LINES:]]


def describe_result(result: JsonObject) -> str:
    """Return the line of statistics."""
    usage = result["usage"]
    tokens = usage["tokens"]
    seconds = usage["sessionDurationMs"] / 1000
    parts = [f"{seconds:.1f} s", count(usage["modelCalls"], "model call")]
    if tokens["input"] is not None:
        parts.append(f"{count(tokens['input'], 'token')} in, {tokens['output'] or 0:,} out")
    changes = usage["codeChanges"]
    if changes["filesModified"]:
        files = count(len(changes["filesModified"]), "file")
        parts.append(f"{files}, +{changes['linesAdded']} -{changes['linesRemoved']}")
    if result["permissionDenials"]:
        parts.append(f"{result['permissionDenials']} denied")
    if result["sessionId"]:
        parts.append(f"session {result['sessionId']}")
    return " · ".join(parts)


def _first_line(text: object, limit: int = 160) -> str:
    line = neutralise(str(text or "")).split("\n", 1)[0]
    return line if len(line) <= limit else line[: limit - 1] + "…"
