"""Verifies a log without changing it: damage, oddities, open calls and turns."""

import os
from collections import Counter
from typing import Any

import msgspec

from trimtab.session.folder import SessionFolder
from trimtab.session.record import Record
from trimtab.session.repair import Examination, Finding, check_readable


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    """The result of verifying a session. Opening it would repair `damage`, nothing else."""

    id: str
    path: str
    size: int
    events: int
    types: dict[str, int]
    damage: list[Finding]
    notes: list[Finding]
    open_calls: list[str]
    """Tool calls without a result: they read as interrupted."""
    open_turns: int
    set_aside: list[str]
    """Files with the bytes that earlier repairs removed."""

    @property
    def is_intact(self) -> bool:
        return not self.damage

    @property
    def can_be_opened(self) -> bool:
        return all(note.kind != "future" for note in self.notes)


class _Names(msgspec.Struct, rename="camel"):
    tool_call_id: Any = None
    turn_id: Any = None


class _Line(msgspec.Struct):
    data: _Names


_names = msgspec.json.Decoder(_Line)


def verify(folder: SessionFolder) -> Report:
    check_readable(folder.events)
    types: Counter[str] = Counter()
    open_items: dict[tuple[str | None, str, str], None] = {}
    with open(folder.events, "rb") as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        examination = Examination(fd)
        for piece in examination.pieces():
            if type(piece) is Record:
                types[piece.type] += 1
                _pair(piece, open_items)
    prefix = os.path.basename(folder.events) + ".damaged-"
    return Report(
        id=folder.id,
        path=folder.events,
        size=size,
        events=examination.count,
        types=dict(types.most_common()),
        damage=examination.findings,
        notes=examination.notes,
        open_calls=[key[2] for key in open_items if key[1] == "tool"],
        open_turns=sum(1 for key in open_items if key[1] == "turn"),
        set_aside=sorted(name for name in os.listdir(folder.path) if name.startswith(prefix)),
    )


_OPENS = {"tool.execution_start": "tool", "assistant.turn_start": "turn"}
_CLOSES = {"tool.execution_complete": "tool", "assistant.turn_end": "turn"}


def _pair(record: Record, open_items: dict[tuple[str | None, str, str], None]) -> None:
    kind = _OPENS.get(record.type) or _CLOSES.get(record.type)
    if kind is None:
        return
    try:
        names = _names.decode(record.line).data
    except ValueError:
        return
    name = names.tool_call_id if kind == "tool" else names.turn_id
    # A call is identified by its id alone; every agent counts turns from 0.
    key = (record.agent_id if kind == "turn" else None, kind, str(name))
    if record.type in _OPENS:
        open_items[key] = None
    else:
        open_items.pop(key, None)
