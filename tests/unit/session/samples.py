"""Logs to break: a short one that looks like a real session, and ways to damage it."""

import json
from typing import Any

from trimtab.session.records import read_records

TYPES: list[tuple[str, dict[str, Any]]] = [
    (
        "session.start",
        {
            "sessionId": "5f0c8a1e-2b7d-4c3a-9e1f-0a1b2c3d4e5f",
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


def event(wire_name: str, data: dict[str, Any], number: int, parent: int | None) -> bytes:
    return json.dumps(
        {
            "type": wire_name,
            "data": data,
            "id": f"00000000-0000-4000-8000-{number:012d}",
            "timestamp": f"2025-11-15T20:42:{number % 60:02d}.000Z",
            "parentId": None if parent is None else f"00000000-0000-4000-8000-{parent:012d}",
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def short_log() -> list[bytes]:
    """The lines of a session with one prompt, as they would be in the file."""
    return [
        event(wire_name, data, number, number - 1 if number else None)
        for number, (wire_name, data) in enumerate(TYPES)
    ]


def text_of(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def lines_in(path: str) -> list[bytes]:
    return [record.line for record in read_records(path)]
