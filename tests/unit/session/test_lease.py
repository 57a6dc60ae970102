import errno
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from logkit import joined, lines_in, short_log
from trimtab.contracts.errors import SessionInUse
from trimtab.session.lease import NAME, Owner, find_owner, lock_file, take_lease
from trimtab.session.log import EventLog


def no_locks(fd: int) -> None:
    raise OSError(errno.ENOTSUP, "no locks here")


LOCKS = [lock_file, no_locks]

HOLDER = """
import sys
from trimtab.session.lease import take_lease
sys.path.insert(0, sys.argv[2])
from test_lease import LOCKS
lease = take_lease(sys.argv[1], lock=LOCKS[int(sys.argv[3])])
print("held", flush=True)
sys.stdin.read()
lease.release()
"""


def holder(folder: Path, kind: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), os.path.dirname(__file__), str(kind)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.communicate("")


@pytest.mark.parametrize("kind", [0, 1])
def test_a_second_process_is_refused_until_the_first_is_done(tmp_path: Path, kind: int) -> None:
    child = holder(tmp_path, kind)
    with pytest.raises(SessionInUse, match=f"process {child.pid}") as caught:
        take_lease(str(tmp_path), lock=LOCKS[kind])
    assert "read-only (trimtab sessions show" in caught.value.message
    assert "fork it (trimtab sessions fork" in caught.value.message
    owner = find_owner(str(tmp_path))
    assert owner is not None
    assert owner.pid == child.pid
    end(child)
    assert find_owner(str(tmp_path)) is None
    take_lease(str(tmp_path), lock=LOCKS[kind]).release()


@pytest.mark.parametrize("kind", [0, 1])
def test_death_releases_the_lease(tmp_path: Path, kind: int) -> None:
    child = holder(tmp_path, kind)
    child.send_signal(signal.SIGKILL)
    end(child)
    assert find_owner(str(tmp_path)) is None
    take_lease(str(tmp_path), lock=LOCKS[kind]).release()


@pytest.mark.parametrize("lock", LOCKS)
def test_one_process_cannot_take_it_twice_either(tmp_path: Path, lock: object) -> None:
    assert callable(lock)
    lease = take_lease(str(tmp_path), lock=lock)
    with pytest.raises(SessionInUse):
        take_lease(str(tmp_path), lock=lock)
    lease.release()
    lease.release()
    take_lease(str(tmp_path), lock=lock).release()


def test_a_later_process_with_the_same_number_is_not_the_owner(tmp_path: Path) -> None:
    stale = Owner(os.getpid(), "another boot/1", os.uname().nodename)
    for name in (NAME, NAME + ".owner"):
        (tmp_path / name).write_text(
            json.dumps({"pid": stale.pid, "started": stale.started, "host": stale.host})
        )
    assert find_owner(str(tmp_path)) is None
    take_lease(str(tmp_path), lock=no_locks).release()


def test_an_owner_on_another_machine_is_believed(tmp_path: Path) -> None:
    (tmp_path / (NAME + ".owner")).write_text('{"pid": 1, "started": "x", "host": "elsewhere"}')
    with pytest.raises(SessionInUse, match="elsewhere"):
        take_lease(str(tmp_path), lock=no_locks)


def test_an_unreadable_lock_file_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / (NAME + ".owner")
    path.write_bytes(b"\0\0rubbish")
    os.utime(path, (0, 0))
    (tmp_path / NAME).write_bytes(b"\xff")
    take_lease(str(tmp_path)).release()
    take_lease(str(tmp_path), lock=no_locks).release()


def test_deleting_the_lock_file_does_not_let_a_second_writer_in(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(joined(short_log()))
    log = EventLog.open(str(path))
    (tmp_path / NAME).unlink()
    half_written = short_log()[0][:40]
    with path.open("ab") as file:
        file.write(half_written)
    with pytest.raises(SessionInUse):
        EventLog.open(str(path))
    assert path.read_bytes() == joined(short_log()) + half_written
    log.close()
    EventLog.open(str(path)).close()


RACER = """
import sys
from trimtab.contracts.errors import SessionInUse
from trimtab.session.log import EventLog
sys.stdin.readline()
done = 0
while done < 20:
    try:
        log = EventLog.open(sys.argv[1])
    except SessionInUse:
        continue
    before = log.count
    for number in range(5):
        log.append(b'{"type":"x","data":{},"id":"%s-%d-%d","timestamp":"","parentId":null}'
                   % (sys.argv[2].encode(), done, number))
    done += 1
    log.close()
    assert not log.findings and log.count == before + 5
"""


def test_racing_writers_never_interleave(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), str(number)], stdin=subprocess.PIPE
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"\n")
        racer.stdin.flush()
    assert [racer.wait(60) for racer in racers] == [0, 0, 0]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    ids = [json.loads(line)["id"] for line in lines_in(path)]
    groups = [ids[start : start + 5] for start in range(0, len(ids), 5)]
    assert len(groups) == 60
    assert all(len({name.rpartition("-")[0] for name in group}) == 1 for group in groups)


def test_a_lock_that_outlives_its_owner_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text(json.dumps({"pid": 1, "started": "before", "host": os.uname().nodename}))
    with path.open() as held:
        lock_file(held.fileno())
        release = threading.Timer(0.1, held.close)
        release.start()
        take_lease(str(tmp_path)).release()
        release.join()


def test_the_owner_is_named_in_a_private_file_where_there_are_no_locks(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lease = take_lease(str(tmp_path), lock=no_locks)
    finally:
        os.umask(before)
    assert (tmp_path / (NAME + ".owner")).stat().st_mode & 0o777 == 0o600
    lease.release()
