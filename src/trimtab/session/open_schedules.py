"""Finds the schedules that were active when a session ended."""

from typing import NamedTuple

from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.schedule import (
    SessionScheduleCancelled,
    SessionScheduleCreated,
    SessionScheduleRearmed,
)
from trimtab.session.records import read_records

READ = frozenset(
    ("session.schedule_created", "session.schedule_cancelled", "session.schedule_rearmed")
)
MARK = b'"session.schedule_created"'
CHUNK = 1 << 20


class RecordedSchedules(NamedTuple):
    """The active schedules by id, the times for which some were set anew, and the highest id."""

    active: dict[int, SessionScheduleCreated]
    rearmed: dict[int, int]
    last_id: int


def has_schedules(log: str) -> bool:
    """Return False if a log never began a schedule: a quick search without parsing."""
    with open(log, "rb") as file:
        before = b""
        while chunk := file.read(CHUNK):
            if MARK in before + chunk:
                return True
            before = chunk[-len(MARK) :]
    return False


def recorded_schedules(log: str) -> RecordedSchedules:
    active: dict[int, SessionScheduleCreated] = {}
    rearmed: dict[int, int] = {}
    last_id = 0
    for record in read_records(log):
        if record.type not in READ:
            continue
        match decode(record.line).data:
            case SessionScheduleCreated() as created:
                active[created.id] = created
                last_id = max(last_id, created.id)
            case SessionScheduleRearmed(id=number, next_run_at=moment):
                rearmed[number] = moment
            case SessionScheduleCancelled(id=number):
                active.pop(number, None)
    return RecordedSchedules(active, rearmed, last_id)
