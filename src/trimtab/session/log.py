"""The event log: an append-only file of a session's durable events, one JSON line each."""

import errno
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from trimtab.config.files import cannot, open_private
from trimtab.contracts.errors import ConfigurationError
from trimtab.session.disk import DiskSync, SyncData, sync_data
from trimtab.session.lease import HANDOVER, Lease, in_use, lock_file, take_lease
from trimtab.session.record import Record
from trimtab.session.records import read_records, tail_records

if TYPE_CHECKING:
    from trimtab.session.repair import Finding

__all__ = ["EventLog", "Record", "read_records", "tail_records"]


class EventLog:
    """The event log of a session, held by its only writer.

    `findings` is the damage that opening repaired, `notes` the oddities it left alone. The caller
    maintains `last_id`: the log writes lines without parsing them.
    """

    def __init__(
        self, path: str, fd: int, lease: Lease, size: int, *, sync: SyncData = sync_data
    ) -> None:
        self.path = path
        self.size = size
        self.count = 0
        self.last_id: str | None = None
        self.findings: tuple[Finding, ...] = ()
        self.notes: tuple[Finding, ...] = ()
        self._fd: int | None = fd
        self._lease = lease
        self._disk = DiskSync(fd, path, lambda: self.size, done=size, sync=sync)

    @classmethod
    def create(cls, path: str, *, sync: SyncData = sync_data) -> "EventLog":
        """Create an empty log. Its name is on disk before any event is reported as synced."""
        folder = os.path.dirname(os.path.abspath(path))
        lease = take_lease(folder)
        try:
            fd = open_private(path, _APPEND | os.O_EXCL)
        except OSError as error:
            lease.release()
            raise cannot("create", path, error) from error
        _lock_log(fd)
        log = cls(path, fd, lease, 0, sync=sync)
        log._disk.sync_folders(folder, os.path.dirname(folder))
        return log

    @classmethod
    def open(cls, path: str) -> "EventLog":
        """Take the lease and repair the log.

        Refuses a log in a newer version of the format, which it would damage.
        """
        from trimtab.session.repair import check_readable, repair

        check_readable(path)
        folder = os.path.dirname(os.path.abspath(path))
        lease = take_lease(folder)
        fd = -1
        try:
            fd = os.open(path, _APPEND)
            _lock_log(fd)
            examination = repair(path)
            if not os.path.samestat(os.fstat(fd), os.stat(path)):  # a repaired log is a new file
                old, fd = fd, -1
                os.close(old)
                fd = os.open(path, _APPEND)
                _lock_log(fd)
        except BaseException as error:
            if fd >= 0:
                os.close(fd)
            lease.release()
            if isinstance(error, BlockingIOError):
                raise in_use(folder) from None
            if isinstance(error, OSError):
                raise cannot("open", path, error) from error
            raise
        log = cls(path, fd, lease, os.fstat(fd).st_size)
        log.count = examination.count
        log.last_id = examination.last_id
        log.findings = tuple(examination.findings)
        log.notes = tuple(examination.notes)
        return log

    def append(self, line: bytes) -> None:
        """Write one record, completely or not at all."""
        assert b"\n" not in line
        if self._fd is None:
            raise ConfigurationError(f"{self.path} is closed: open the session again.")
        record = line + b"\n"
        try:
            written = os.write(self._fd, record)
        except OSError as error:
            raise cannot("save the session to", self.path, error) from error
        if written != len(record):
            self._remove_partial(self._fd, written)
            full = OSError(errno.ENOSPC, "the disk is full")
            raise cannot("save the session to", self.path, full)
        self.size += written
        self.count += 1

    @property
    def is_open(self) -> bool:
        """True if records can be appended."""
        return self._fd is not None

    async def synced(self) -> None:
        """Return when everything appended so far is on the disk."""
        await self._disk.wait()

    def sync_soon(self) -> None:
        """Start a sync of everything appended so far, without waiting for it."""
        self._disk.request()

    def close(self) -> None:
        """Sync the rest and release the lease."""
        if self._fd is None:
            return
        try:
            self._disk.finish()
        finally:
            os.close(self._fd)
            self._fd = None
            self._lease.release()

    def _remove_partial(self, fd: int, written: int) -> None:
        """Remove a partly written record, unless somebody else wrote after it."""
        with suppress(OSError):
            end = os.lseek(fd, 0, os.SEEK_CUR)
            if os.fstat(fd).st_size == end:
                os.ftruncate(fd, end - written)


_APPEND = os.O_WRONLY | os.O_APPEND


def _lock_log(fd: int) -> None:
    """Lock the log itself too: somebody may delete the lock file next to it."""
    deadline = time.monotonic() + HANDOVER
    while True:
        try:
            lock_file(fd)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        except OSError:
            return  # file locks are not supported here; the lease uses another way
        else:
            return
