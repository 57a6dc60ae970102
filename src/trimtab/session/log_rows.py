"""Turns a log into rows for the index of past sessions: turns, checkpoints, files, references."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.session.record import Record
from trimtab.session.records import read_records
from trimtab.session.transcript import plain_event

Row = tuple[Any, ...]
MAX_LENGTH = 65_536
"""Characters of a text that are indexed."""
PARTS = (
    *("overview", "history", "work_done", "technical_details"),
    *("important_files", "next_steps"),
)
"""The parts of a summary, in the order of the columns."""
WRITERS = frozenset(("create", "edit", "apply_patch"))
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_URL = re.compile(rb"github\.com/([\w.-]+/[\w.-]+)/(pull|issues)/(\d+)")
_COMMIT = re.compile(rb"\[[\w/.-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\] ")
"""The line git prints after a commit."""


class Stopped(Exception):
    """Raised when nobody waits for the rows any more."""


class LogRows:
    """The rows of one session."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._turns: list[tuple[str, list[str], str]] = []
        self._checkpoints: list[Row] = []
        self._files: dict[str, Row] = {}
        self._refs: dict[tuple[str, str], Row] = {}
        self._readers: dict[str, Callable[[dict[str, Any], str], None]] = {
            "user.message": self._read_prompt,
            "assistant.message": self._read_reply,
            "tool.execution_start": self._read_call,
            "session.compaction_complete": self._read_summary,
        }

    def read(self, log: str, stopped: Callable[[], bool]) -> None:
        """Read a log. Raises `OSError` and `Stopped`."""
        for number, record in enumerate(read_records(log)):
            if number % 1000 == 0 and stopped():
                raise Stopped
            if record.agent_id is not None:
                continue
            reader = self._readers.get(record.type)
            if reader and (record.type != "tool.execution_start" or _may_write(record.line)):
                data = plain_event(record.line).get("data")
                if isinstance(data, dict):
                    reader(data, record.timestamp)
            self._find_refs(record)

    def tables(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield each table's name and its rows."""
        turns = [
            (index, prompt[:MAX_LENGTH], "\n\n".join(replies)[:MAX_LENGTH], time)
            for index, (prompt, replies, time) in enumerate(self._turns)
        ]
        yield "turns", [(self._id, *turn) for turn in turns]
        yield "checkpoints", self._checkpoints
        yield "session_files", list(self._files.values())
        yield "session_refs", list(self._refs.values())
        texts = [(f"{turn[1]}\n{turn[2]}", "turn", str(turn[0])) for turn in turns]
        texts += [("\n".join(row[2:9]), "checkpoint", str(row[1])) for row in self._checkpoints]
        yield "search_index", [(text, self._id, kind, source) for text, kind, source in texts]

    @property
    def _turn(self) -> int:
        return max(0, len(self._turns) - 1)

    def _read_prompt(self, data: dict[str, Any], time: str) -> None:
        if data.get("source") in (None, "user"):
            self._turns.append((_text(data.get("content")), [], time))

    def _read_reply(self, data: dict[str, Any], time: str) -> None:
        if self._turns and (text := _text(data.get("content"))):
            self._turns[-1][1].append(text)

    def _read_call(self, data: dict[str, Any], time: str) -> None:
        tool, arguments = _text(data.get("toolName")), data.get("arguments")
        if tool not in WRITERS:
            return
        if isinstance(arguments, dict) and "path" in arguments:
            paths = [_text(arguments["path"])]
        else:  # a patch, as text or as the one argument
            paths = _PATCHED.findall(
                "\n".join(map(_text, arguments.values()))
                if isinstance(arguments, dict)
                else _text(arguments)
            )
        for path in paths:
            self._files.setdefault(path, (self._id, path, tool, self._turn, time))

    def _read_summary(self, data: dict[str, Any], time: str) -> None:
        summary = _text(data.get("summaryContent"))[:MAX_LENGTH]
        if not summary:
            return
        found = {name: _tagged(summary, name) for name in ("checkpoint_title", *PARTS)}
        if not any(found.values()):
            found["overview"] = summary
        texts = (found["checkpoint_title"], *(found[name] for name in PARTS))
        self._checkpoints.append((self._id, len(self._checkpoints) + 1, *texts, time))

    def _find_refs(self, record: Record) -> None:
        if record.type == "tool.execution_complete":
            for commit in _COMMIT.findall(record.line):
                self._add_ref("commit", commit.decode(), record)
        if record.type in ("user.message", "assistant.message", "tool.execution_complete"):
            for repository, kind, number in _URL.findall(record.line):
                value = f"{repository.decode()}#{number.decode()}"
                self._add_ref("pr" if kind == b"pull" else "issue", value, record)

    def _add_ref(self, kind: str, value: str, record: Record) -> None:
        row = (self._id, kind, value, self._turn, record.timestamp)
        self._refs.setdefault((kind, value), row)


def _may_write(line: bytes) -> bool:
    """Test the bytes of a line, which avoids parsing the arguments of most calls."""
    return any(b'"' + name.encode() + b'"' in line for name in WRITERS)


def _tagged(text: str, name: str) -> str:
    return text.partition(f"<{name}>")[2].partition(f"</{name}>")[0].strip()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
