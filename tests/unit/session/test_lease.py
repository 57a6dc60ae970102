import errno
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logkit import joined, lines_in, short_log
from trimtab.contracts.errors import SessionInUse, TrimtabError
from trimtab.session.lease import NAME, Owner, find_owner, lock_file, take_lease
from trimtab.session.log import EventLog

HOST = os.uname().nodename


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
from trimtab.contracts.errors import SessionInUse, TrimtabError
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


class Locks:
    """Locks that fail with these errors first, one for each attempt, and counts the attempts."""

    def __init__(self, *errors: OSError) -> None:
        self._errors = list(errors)
        self.attempts = 0

    def lock(self, fd: int) -> None:
        self.attempts += 1
        if self._errors:
            raise self._errors.pop(0)
        lock_file(fd)


def write_owner(path: Path, *, started: str, host: str = HOST) -> None:
    path.write_text(json.dumps({"pid": os.getpid(), "started": started, "host": host}))


def test_the_lock_file_names_its_owner_alone_and_is_emptied_afterwards(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text("x" * 1000)
    path.chmod(0o644)
    lease = take_lease(str(tmp_path))
    owner = json.loads(path.read_bytes())
    assert (owner["pid"], owner["host"]) == (os.getpid(), os.uname().nodename)
    assert path.stat().st_mode & 0o777 == 0o600
    lease.release()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("umask", [0, 0o777])
@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_files_are_for_the_owner_alone_whatever_the_umask(
    tmp_path: Path, umask: int, lock: Callable[[int], None]
) -> None:
    before = os.umask(umask)
    try:
        lease = take_lease(str(tmp_path), lock=lock)
    finally:
        os.umask(before)
    name = NAME if lock is lock_file else NAME + ".owner"
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert json.loads((tmp_path / name).read_bytes())["pid"] == os.getpid()
    lease.release()


def test_a_lock_file_that_was_removed_meanwhile_is_locked_anew(tmp_path: Path) -> None:
    path = tmp_path / NAME
    seen: list[int] = []

    def lock(fd: int) -> None:
        lock_file(fd)
        seen.append(os.fstat(fd).st_ino)
        if len(seen) == 1:
            path.unlink()
        elif len(seen) == 2:
            path.rename(tmp_path / "moved")
            path.write_bytes(b"")

    lease = take_lease(str(tmp_path), lock=lock)
    assert len(seen) == 3
    assert path.stat().st_ino == seen[2]
    with pytest.raises(SessionInUse):
        take_lease(str(tmp_path))
    lease.release()


@pytest.mark.parametrize("alive", [True, False])
def test_only_the_lock_of_an_owner_that_has_ended_is_waited_for(
    tmp_path: Path, alive: bool
) -> None:
    write_owner(tmp_path / NAME, started="before", host="elsewhere" if alive else HOST)
    locks = Locks(*[BlockingIOError() for _ in range(3)])
    if alive:
        with pytest.raises(SessionInUse, match=f"process {os.getpid()} on elsewhere"):
            take_lease(str(tmp_path), lock=locks.lock)
        assert locks.attempts == 1
    else:
        take_lease(str(tmp_path), lock=locks.lock).release()
        assert locks.attempts == 4


def test_a_lock_whose_owner_is_unknown_is_in_use_by_another_process(tmp_path: Path) -> None:
    locks = Locks(BlockingIOError())
    with pytest.raises(SessionInUse, match="in use by another process: follow it"):
        take_lease(str(tmp_path), lock=locks.lock)
    assert locks.attempts == 1


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL])
def test_where_locks_are_not_supported_a_file_is_created_instead(
    tmp_path: Path, number: int
) -> None:
    lease = take_lease(str(tmp_path), lock=Locks(OSError(number, "x")).lock)
    assert (tmp_path / (NAME + ".owner")).exists()
    lease.release()
    assert not (tmp_path / (NAME + ".owner")).exists()
    lease.release()


def test_a_lock_that_fails_is_an_error_and_leaves_no_file_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(TrimtabError, match="Cannot lock"):
        take_lease(str(tmp_path), lock=Locks(OSError(errno.EIO, "broken")).lock)
    with pytest.raises(TrimtabError, match="Cannot lock"):
        take_lease(str(tmp_path / "nowhere"))
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_the_owner_is_found_in_either_file(tmp_path: Path) -> None:
    write_owner(tmp_path / NAME, started="before")
    write_owner(tmp_path / (NAME + ".owner"), started="x", host="elsewhere")
    owner = find_owner(str(tmp_path))
    assert owner is not None
    assert owner.host == "elsewhere"


@pytest.mark.parametrize(("age", "taken"), [(-3600, False), (10, True)])
def test_an_owner_that_has_not_written_its_name_yet_has_a_moment_to_do_so(
    tmp_path: Path, age: int, taken: bool
) -> None:
    path = tmp_path / (NAME + ".owner")
    path.write_bytes(b"")
    moment = time.time() - age
    os.utime(path, (moment, moment))
    if taken:
        take_lease(str(tmp_path), lock=no_locks).release()
    else:
        with pytest.raises(SessionInUse):
            take_lease(str(tmp_path), lock=no_locks)
    assert path.exists() is not taken
    assert sorted(os.listdir(tmp_path)) == ([NAME] if taken else [NAME, NAME + ".owner"])


def test_an_owner_stays_the_same_while_it_works_and_differs_from_its_children(
    tmp_path: Path,
) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    lease = take_lease(str(tmp_path / "ours"))
    child = holder(tmp_path / "theirs", 0)
    ours = json.loads((tmp_path / "ours" / NAME).read_bytes())
    theirs = json.loads((tmp_path / "theirs" / NAME).read_bytes())
    assert ours["started"] != theirs["started"]
    grown = mmap.mmap(-1, 1 << 26)
    assert find_owner(str(tmp_path / "ours")) is not None
    grown.close()
    end(child)
    lease.release()


def test_a_process_that_has_ended_and_was_not_waited_for_owns_nothing(tmp_path: Path) -> None:
    child = holder(tmp_path, 1)
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert find_owner(str(tmp_path)) is None
    end(child)
