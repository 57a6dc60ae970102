"""A log as a person reads it: who said what, which tool was called and what came back."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from trimtab.session.records import Record


class Entry(msgspec.Struct, frozen=True):
    """One paragraph of a transcript. `kind` is user, assistant, reasoning, call, result or note.

    `heading` is short and about the text; `failed` is for results; `agent` names a sub-agent.
    """

    kind: str
    heading: str
    text: str
    timestamp: str = ""
    agent: str | None = None
    failed: bool = False


def read_transcript(records: Iterable[Record]) -> Iterator[Entry]:
    """Entries in the order of the log; of the records only what is open is kept in memory."""
    calls: dict[str, str] = {}
    for record in records:
        reader = _READERS.get(record.type)
        if reader is None:
            continue
        data = plain_event(record.line).get("data")
        if isinstance(data, dict):
            for kind, heading, text, *failed in reader(data, calls):
                yield Entry(
                    kind, heading, text, record.timestamp, record.agent_id, failed == [True]
                )


def plain_event(line: bytes) -> dict[str, Any]:
    """An event as plain values, whoever wrote it."""
    try:
        value = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        value = json.loads(line, strict=False)
    return value if isinstance(value, dict) else {}


_Reader = Callable[[dict[str, Any], dict[str, str]], Iterator[tuple[Any, ...]]]


def _user(data: dict[str, Any], calls: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    content = _text(data.get("content"))
    if content or not data.get("isAutopilotContinuation"):
        yield "user", "User", content
    for attachment in data.get("attachments") or ():
        if isinstance(attachment, dict):
            name = attachment.get("path") or attachment.get("displayName") or attachment.get("type")
            yield "note", "Attachment", _text(name)


def _assistant(data: dict[str, Any], calls: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    if reasoning := _text(data.get("reasoningText")):
        yield "reasoning", "Reasoning", reasoning
    if content := _text(data.get("content")):
        yield "assistant", "Assistant", content


def _start(data: dict[str, Any], calls: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    name = _text(data.get("toolName"))
    calls[_text(data.get("toolCallId"))] = name
    yield "call", name, _arguments(data.get("arguments"))


def _complete(data: dict[str, Any], calls: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    name = calls.pop(_text(data.get("toolCallId")), "") or _text(data.get("toolName")) or "tool"
    failed = data.get("success") is False
    outcome = data.get("error") if failed else data.get("result")
    if isinstance(outcome, dict):
        outcome = (
            outcome.get("message") or outcome.get("detailedContent") or outcome.get("content") or ""
        )
    yield "result", name, _text(outcome), failed


def _note(heading: str, *fields: str) -> _Reader:
    def read(data: dict[str, Any], calls: dict[str, str]) -> Iterator[tuple[Any, ...]]:
        yield "note", heading, _text(next((data[name] for name in fields if data.get(name)), ""))

    return read


_READERS: dict[str, _Reader] = {
    "user.message": _user,
    "assistant.message": _assistant,
    "tool.execution_start": _start,
    "tool.execution_complete": _complete,
    "session.compaction_complete": _note("Earlier messages were summarised", "summaryContent"),
    "session.error": _note("Error", "message"),
    "session.warning": _note("Warning", "message"),
    "session.model_change": _note("Model", "newModel"),
    "session.mode_changed": _note("Mode", "newMode"),
    "session.task_complete": _note("Task complete", "summary", "reason"),
    "subagent.started": _note("Sub-agent", "agentDisplayName", "agentName"),
    "abort": _note("Stopped", "reason"),
}


def _arguments(value: Any) -> str:
    """A command or a path as it is, anything else as JSON."""
    if isinstance(value, dict) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
