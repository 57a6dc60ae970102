"""Identifiers are random UUIDs, each given out once whoever asks."""

import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from trimtab.contracts.ids import is_uuid, new_id, timestamp


def test_ids_are_random_uuids_of_version_4() -> None:
    ids = [new_id() for _ in range(500)]
    assert len(set(ids)) == len(ids)
    for text in ids:
        assert is_uuid(text)
        assert (uuid.UUID(text).version, uuid.UUID(text).variant) == (4, uuid.RFC_4122)


def test_no_id_is_given_out_twice_to_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        lists = list(pool.map(lambda _: [new_id() for _ in range(2000)], range(8)))
    assert len({text for ids in lists for text in ids}) == 16_000


FORK = """
import os
from trimtab.contracts.ids import new_id
new_id()
pid = os.fork()
os.write(1, new_id().encode() + b" ")
if pid:
    os.waitpid(pid, 0)
"""


def test_a_forked_process_gives_out_other_ids() -> None:
    out = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert len(set(out.stdout.split())) == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (0.25, "1970-01-01T00:00:00.250Z"),
        (1, "1970-01-01T00:00:01.000Z"),
        (1700000000.5, "2023-11-14T22:13:20.500Z"),
        (1700000000, "2023-11-14T22:13:20.000Z"),
    ],
)
def test_a_moment_is_written_with_milliseconds_in_utc(seconds: float, text: str) -> None:
    assert timestamp(seconds) == timestamp(seconds) == text


def test_timestamps_follow_the_clock() -> None:
    before = time.time_ns() // 1_000_000
    found = datetime.fromisoformat(timestamp()).timestamp()
    assert before <= round(found * 1000) <= time.time_ns() // 1_000_000
