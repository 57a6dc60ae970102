"""Identifiers are random UUIDs, each given out once whoever asks."""

import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

from trimtab.contracts.ids import is_uuid, new_id


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
