"""Session logs to look at and to break: one that looks real, and the program that reads them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trimtab.session.records import read_records

SESSION = "5f0c8a1e-2b7d-4c3a-9e1f-0a1b2c3d4e5f"

EVENTS: list[tuple[str, dict[str, Any]]] = [
    (
        "session.start",
        {
            "sessionId": SESSION,
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": "1.0.35",
            "startTime": "2025-11-15T20:42:00.000Z",
            "context": {"cwd": "/work", "branch": "main"},
        },
    ),
    ("session.model_change", {"newModel": "a-model"}),
    ("system.message", {"role": "system", "content": "Be brief.\n<rules>{}</rules>"}),
    ("user.message", {"content": 'Was heißt "naïve"?\n\tTab', "attachments": []}),
    ("assistant.turn_start", {"turnId": "0"}),
    (
        "assistant.message",
        {
            "messageId": "m1",
            "content": "",
            "toolRequests": [
                {"toolCallId": "c1", "name": "bash", "type": "function", "arguments": {"n": [1]}}
            ],
        },
    ),
    ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash", "arguments": {"n": [1]}}),
    (
        "tool.execution_complete",
        {"toolCallId": "c1", "success": True, "result": {"content": "\u001b[1mok\u001b[0m {}"}},
    ),
    ("made.up", {"unknown": [None, True, 1.5e3, {"type": "x", "id": "y"}]}),
    ("assistant.message", {"messageId": "m2", "content": "Einfältig 🙂"}),
    ("assistant.turn_end", {"turnId": "0"}),
    ("session.shutdown", {"shutdownType": "routine"}),
]


def event(wire_name: str, data: dict[str, Any], number: int, parent: int | None = None) -> bytes:
    """One line of a log, as the real program writes it."""
    return json.dumps(
        {
            "type": wire_name,
            "data": data,
            "id": event_id(number),
            "timestamp": f"2025-11-15T20:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
            "parentId": None if parent is None else event_id(parent),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def event_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def chain(events: list[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """Lines that name each other as parents."""
    return [
        event(wire_name, data, number, number - 1 if number else None)
        for number, (wire_name, data) in enumerate(events)
    ]


def short_log() -> list[bytes]:
    """The lines of a session with one prompt."""
    return chain(EVENTS)


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def lines_in(path: str | Path) -> list[bytes]:
    return [record.line for record in read_records(str(path))]


def store_session(home: Path, lines: list[bytes], session_id: str = SESSION, **extra: str) -> Path:
    """A session folder with this log; `extra` are further files."""
    folder = home / "session-state" / session_id
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(joined(lines))
    for name, text in extra.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def sessions(
    home: Path, *args: str, cwd: str | Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`trimtab sessions …` in a fresh process."""
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "sessions", *args],
        env={"COPILOT_HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC"},
        cwd=cwd or home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
