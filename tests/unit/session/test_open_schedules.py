"""Schedules that were active when a session ended."""

from pathlib import Path

import pytest

from logkit import event, joined
from trimtab.session.open_schedules import CHUNK, MARK, has_schedules, recorded_schedules


def created(number: int) -> bytes:
    return event("session.schedule_created", {"id": number, "prompt": f"p{number}"}, number)


def test_schedules_are_active_until_they_are_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(
        joined(
            [
                created(4),
                created(2),
                event("user.message", {"content": "x"}, 50),
                event("session.schedule_rearmed", {"id": 2, "nextRunAt": 77}, 51),
                created(9),
                event("session.schedule_cancelled", {"id": 9}, 52),
                event("session.schedule_cancelled", {"id": 8}, 53),
                created(3),
            ]
        )
    )
    found = recorded_schedules(str(log))
    assert {number: each.prompt for number, each in found.active.items()} == {
        4: "p4",
        2: "p2",
        3: "p3",
    }
    assert (found.rearmed, found.last_id) == ({2: 77}, 9)
    log.write_bytes(b"")
    assert recorded_schedules(str(log)) == ({}, {}, 0)


@pytest.mark.parametrize("before", [0, 5, CHUNK - 1, CHUNK, CHUNK + 1, *range(-30, 0, 3)])
def test_the_mark_of_a_schedule_is_found_wherever_it_is(tmp_path: Path, before: int) -> None:
    log = tmp_path / "log"
    size = before if before >= 0 else CHUNK + before
    log.write_bytes(b"x" * size + MARK)
    assert has_schedules(str(log))
    log.write_bytes(b"x" * size + MARK[:-1])
    assert not has_schedules(str(log))


def test_a_mark_in_a_later_part_of_a_long_log_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * (3 * CHUNK - 7) + MARK + b"x" * CHUNK)
    assert has_schedules(str(log))
    log.write_bytes(b"x" * (3 * CHUNK))
    assert not has_schedules(str(log))
