"""The lease of a session: a lock file that makes one process its only writer."""

import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from trimtab.config.files import cannot, open_private
from trimtab.contracts.errors import ConfigurationError, SessionInUse

NAME = "session.lock"
_NO_FLOCK = frozenset((errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL))


class Owner(msgspec.Struct, frozen=True):
    """The process that holds a lease. `started` tells it from a later process with the same pid."""

    pid: int
    started: str
    host: str

    def is_alive(self) -> bool:
        """Return True if the owner still runs. An owner on another machine is assumed to."""
        return self.host != os.uname().nodename or _started(self.pid) == self.started


class Lease:
    """The right to write to a session. Held until `release`, or until the process ends."""

    def __init__(self, fd: int | None, exclusive_file: str | None) -> None:
        self._fd = fd
        self._exclusive_file = exclusive_file

    def release(self) -> None:
        if self._exclusive_file:
            with suppress(OSError):
                os.unlink(self._exclusive_file)
            self._exclusive_file = None
        if self._fd is not None:
            with suppress(OSError):
                os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None


HANDOVER = 2.0
"""Seconds a lock may outlive its owner: a child that was being started has the file open."""


def lock_file(fd: int) -> None:
    """Lock an open file for this process alone, or raise `BlockingIOError`."""

    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take_lease(folder: str, *, lock: Callable[[int], None] = lock_file) -> Lease:
    """Become the only writer of the session in `folder`, or raise `SessionInUse`."""
    path = os.path.join(folder, NAME)
    owner_data = msgspec.json.encode(_this_process())
    deadline = time.monotonic() + HANDOVER
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise cannot("lock", folder, error) from error
        try:
            lock(fd)
            if not _still_there(fd, path):
                os.close(fd)
                continue
            with suppress(PermissionError):  # created by another user of the same folder
                os.fchmod(fd, 0o600)
            os.ftruncate(fd, 0)
            os.pwrite(fd, owner_data, 0)
            return Lease(fd, None)
        except BlockingIOError:
            os.close(fd)
            if _owner_may_be_alive(path) or time.monotonic() > deadline:
                raise in_use(folder) from None
            time.sleep(0.01)
        except OSError as error:
            os.close(fd)
            if error.errno not in _NO_FLOCK:
                raise cannot("lock", folder, error) from error
            return _take_exclusive_file(folder, owner_data)


def _owner_may_be_alive(path: str) -> bool:
    owner = _read_owner(path)
    return owner is None or owner.is_alive()


def find_owner(folder: str) -> Owner | None:
    """Return the process that writes to a session now. Takes no lock, so it disturbs nobody."""
    for name in (NAME, NAME + ".owner"):
        owner = _read_owner(os.path.join(folder, name))
        if owner and owner.is_alive():
            return owner
    return None


def in_use(folder: str) -> SessionInUse:
    session_id = os.path.basename(folder)
    owner = _read_owner(os.path.join(folder, NAME)) or find_owner(folder)
    who = f"process {owner.pid} on {owner.host}" if owner else "another process"
    return SessionInUse(
        f"Session {session_id} is in use by {who}: follow it read-only "
        f"(trimtab sessions show {session_id} --follow) "
        f"or fork it (trimtab sessions fork {session_id})."
    )


def _take_exclusive_file(folder: str, owner_data: bytes) -> Lease:
    """Take a lease where file locks are not supported: the creator of a file is the owner."""
    path = os.path.join(folder, NAME + ".owner")
    while True:
        try:
            fd = open_private(path, os.O_WRONLY | os.O_EXCL)
        except FileExistsError:
            _remove_if_dead(path, folder)
            continue
        except OSError as error:
            raise cannot("lock", folder, error) from error
        try:
            os.write(fd, owner_data)
        finally:
            os.close(fd)
        return Lease(None, path)


def _remove_if_dead(path: str, folder: str) -> None:
    """Remove a dead owner's file; if it was replaced by a live owner's, put that back."""
    seen = _read(path)
    owner = _parse(seen)
    if owner is None and time.time() - _changed(path) < 2:
        raise in_use(folder)  # just created, and not written yet
    if owner and owner.is_alive():
        raise in_use(folder)
    aside = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    if _read(aside) != seen:
        with suppress(FileExistsError):
            os.link(aside, path)
    os.unlink(aside)


def _still_there(fd: int, path: str) -> bool:
    """Return True if the locked file is still at its path: its folder may have been moved."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _read_owner(path: str) -> Owner | None:
    return _parse(_read(path))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _parse(data: bytes) -> Owner | None:
    try:
        return msgspec.json.decode(data, type=Owner)
    except ValueError:
        return None


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _this_process() -> Owner:
    pid = os.getpid()
    return Owner(pid, _started(pid) or "", os.uname().nodename)


def _started(pid: int) -> str | None:
    """Return a text that identifies the start of a process; None if it does not run."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read(64).decode().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None if os.path.exists("/proc/self/stat") else _started_by_ps(pid)
    # Field 22, counted from 1; two are before the parenthesis. A zombie does not write any more.
    return None if fields[0] in (b"Z", b"X") else f"{boot}/{fields[19].decode()}"


def _started_by_ps(pid: int) -> str | None:
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot tell if a session is in use without ps ({error.strerror}): install it."
        ) from None
    return answer.stdout.strip() or None
