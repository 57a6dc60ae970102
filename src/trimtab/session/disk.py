"""A thread that syncs a log to disk without blocking the event loop."""

import asyncio
import errno
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from typing import Literal

from trimtab.config.files import cannot, sync_dir
from trimtab.contracts.errors import StorageError, TrimtabError

SyncData = Callable[[int], None]
"""Syncs an open file to disk, as `os.fdatasync` does."""

sync_data: SyncData = getattr(os, "fdatasync", os.fsync)
Request = Literal["soon", "now", "end"]
MOMENT = 0.02
"""Seconds that a sync nobody waits for is put off, for more to share it."""
_CANNOT_SYNC = frozenset((errno.EINVAL, errno.ENOTSUP))


class DiskSync:
    """Syncs a file on request. Requests made during a sync share the next one."""

    def __init__(
        self,
        fd: int,
        path: str,
        size: Callable[[], int],
        *,
        done: int = 0,
        sync: SyncData = sync_data,
    ) -> None:
        self._fd = fd
        self._sync_data = sync
        self._path = path
        self._size = size
        self._done = done
        self._folders: tuple[str, ...] = ()
        self._failure: TrimtabError | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._asked = False
        self._requests: queue.SimpleQueue[Request] | None = None
        self._thread: threading.Thread | None = None

    def sync_folders(self, *folders: str) -> None:
        """Sync the names in these folders too, before anything is reported as safe."""
        self._folders = folders

    def request(self) -> None:
        """Have everything appended so far synced in a moment and return at once."""
        if not self._asked and (self._done < self._size() or self._folders):
            self._asked = True
            self._wake_thread("soon")

    async def wait(self) -> None:
        """Return when everything appended so far would survive a power cut."""

        if self._failure:
            raise self._failure
        size = self._size()
        if self._done >= size and not self._folders:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((size, waiter))
        # Even if a sync is running: the thread may have read the size before we began to wait.
        self._wake_thread("now")
        await waiter

    def finish(self) -> None:
        """Sync the rest and end the thread. Raises if anything ever failed to reach the disk."""
        if self._thread and self._requests:
            self._requests.put("end")
            self._thread.join()
            self._thread = None
        self._sync()
        self._report()
        if self._failure:
            raise self._failure

    def _wake_thread(self, request: Request) -> None:
        if self._requests is None:
            self._requests = queue.SimpleQueue()
            self._thread = threading.Thread(
                target=self._work, args=(self._requests,), name="log-sync", daemon=True
            )
            self._thread.start()
        self._requests.put(request)

    def _work(self, requests: "queue.SimpleQueue[Request]") -> None:
        while (request := requests.get()) != "end":
            if request == "soon" and self._gather(requests) == "end":
                return
            self._asked = False  # before the sync, which sees only what is there when it begins
            self._sync()
            self._report()

    def _gather(self, requests: "queue.SimpleQueue[Request]") -> Request:
        """Let more come: to wake this thread for every event would cost the loop more than it."""
        try:
            return requests.get(timeout=MOMENT)
        except Empty:
            return "soon"

    def _sync(self) -> None:
        size = self._size()
        if self._failure or (self._done >= size and not self._folders):
            return
        try:
            folders, self._folders = self._folders, ()
            for folder in folders:
                with suppress(PermissionError):  # a folder may be usable but not readable
                    sync_dir(folder)
            self._sync_data(self._fd)
            if os.fstat(self._fd).st_nlink == 0:
                self._failure = StorageError(
                    f"{self._path} was deleted while the session was in use: restore it from a "
                    "backup, or start a new session."
                )
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                # The kernel drops pages it could not write: a later success would prove nothing.
                self._failure = cannot("save", self._path, error)
                return
        self._done = size

    def _report(self) -> None:
        """Wake the waiters whose bytes are on disk, each on its own event loop."""
        while self._waiting and (self._failure or self._waiting[0][0] <= self._done):
            waiter = self._waiting.popleft()[1]
            with suppress(RuntimeError):  # its loop is closed; nobody waits any more
                waiter.get_loop().call_soon_threadsafe(_wake, waiter, self._failure)


def _wake(waiter: "asyncio.Future[None]", failure: Exception | None) -> None:
    if waiter.done():
        return
    if failure:
        waiter.set_exception(failure)
    else:
        waiter.set_result(None)
