"""Turns a log into a readable transcript: messages, tool calls, results, notes."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from trimtab.session.record import Record


class Entry(msgspec.Struct, frozen=True):
    """A paragraph of a transcript. `kind` is user, assistant, reasoning, call, result or note.

    `heading` is a short label for the text; `failed` is for results; `agent` names a sub-agent.
    """

    kind: str
    heading: str
    text: str
    timestamp: str = ""
    agent: str | None = None
    failed: bool = False


def read_transcript(records: Iterable[Record]) -> Iterator[Entry]:
    """Yield entries in the order of the log. Keeps only the names of open calls in memory."""
    reader = _Reader()
    for record in records:
        read = reader.by_type.get(record.type)
        if read is None:
            continue
        data = plain_event(record.line).get("data")
        if isinstance(data, dict):
            for kind, heading, text, *failed in read(data):
                yield Entry(
                    kind, heading, text, record.timestamp, record.agent_id, failed == [True]
                )


def plain_event(line: bytes) -> dict[str, Any]:
    """Return an event as plain values, whoever wrote it; empty if it is nested too deeply."""
    try:
        value = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        try:
            value = json.loads(line, strict=False)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


_Parts = Iterator[tuple[Any, ...]]
"""Kind, heading, text and, for results, whether the call failed."""


class _Reader:
    """Turns the data of each event type into entries."""

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}
        self.by_type: dict[str, Callable[[dict[str, Any]], _Parts]] = {
            "user.message": self._user,
            "assistant.message": self._assistant,
            "tool.execution_start": self._start,
            "tool.execution_complete": self._complete,
        } | {name: _note(heading, *fields) for name, (heading, *fields) in _NOTES.items()}

    def _user(self, data: dict[str, Any]) -> _Parts:
        content = _text(data.get("content"))
        if content or not data.get("isAutopilotContinuation"):
            yield "user", "User", content
        for item in data.get("attachments") or ():
            if isinstance(item, dict):
                name = item.get("path") or item.get("displayName") or item.get("type")
                yield "note", "Attachment", _text(name)

    def _assistant(self, data: dict[str, Any]) -> _Parts:
        if reasoning := _text(data.get("reasoningText")):
            yield "reasoning", "Reasoning", reasoning
        if content := _text(data.get("content")):
            yield "assistant", "Assistant", content

    def _start(self, data: dict[str, Any]) -> _Parts:
        name = _text(data.get("toolName"))
        self._calls[_text(data.get("toolCallId"))] = name
        yield "call", name, _arguments(data.get("arguments"))

    def _complete(self, data: dict[str, Any]) -> _Parts:
        name = self._calls.pop(_text(data.get("toolCallId")), "tool")
        failed = data.get("success") is False
        outcome = data.get("error") if failed else data.get("result")
        if isinstance(outcome, dict):
            fields = ("message", "detailedContent", "content")
            outcome = next((outcome[field] for field in fields if outcome.get(field)), "")
        yield "result", name, _text(outcome), failed


_NOTES = {
    "session.compaction_complete": ("Earlier messages were summarised", "summaryContent"),
    "session.error": ("Error", "message"),
    "session.warning": ("Warning", "message"),
    "session.model_change": ("Model", "newModel"),
    "session.mode_changed": ("Mode", "newMode"),
    "session.task_complete": ("Task complete", "summary", "reason"),
    "subagent.started": ("Sub-agent", "agentDisplayName", "agentName"),
    "abort": ("Stopped", "reason"),
}
"""Type → heading, and the fields that may hold the text."""


def _note(heading: str, *fields: str) -> Callable[[dict[str, Any]], _Parts]:
    def read(data: dict[str, Any]) -> _Parts:
        yield "note", heading, _text(next((data[name] for name in fields if data.get(name)), ""))

    return read


def _arguments(value: Any) -> str:
    """Return a single string argument, such as a command or path, as it is; others as JSON."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
