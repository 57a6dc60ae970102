"""Writes to a file descriptor without blocking the event loop, however slow the reader is."""

import asyncio
import os
import select
import time
from collections.abc import Callable

_ATOMIC = 4096
"""A pipe that polls writable takes this many bytes without blocking (PIPE_BUF)."""
_taken: list[int] = []


def take_stdout() -> int:
    """Reserve standard output for results; redirect what tools print to standard error."""
    if not _taken:
        _taken.append(os.dup(1))
        os.dup2(2, 1)
    return _taken[0]


def open_outputs(*fds: int) -> "tuple[Output, ...]":
    """Return a writer for each descriptor; descriptors of the same file share one.

    Two writers of one terminal could overtake each other, because each has its own buffer.
    """
    writers: dict[tuple[int, int], Output] = {}
    outputs: list[Output] = []
    for fd in fds:
        try:
            found = os.fstat(fd)
        except OSError:  # a closed descriptor is reported by the first write
            outputs.append(Output(fd))
        else:
            outputs.append(writers.setdefault((found.st_dev, found.st_ino), Output(fd)))
    return tuple(outputs)


class Output:
    """A buffered, ordered writer.

    The descriptor stays in blocking mode, because other programs may share it; instead no more is
    written than is known to fit. The end of the reader is reported once, by `on_closed`.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.on_closed: Callable[[], None] = lambda: None
        self._buffer = bytearray()
        self._waiting = False
        self._scheduled = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._progress = asyncio.Event()
        self.closed = False
        self.failure: OSError | None = None
        """Why it is closed."""

    @property
    def fd(self) -> int:
        return self._fd

    def write(self, data: bytes) -> None:
        """Buffer data; everything buffered in one iteration of the loop is written together."""
        if self.closed:
            return
        self._buffer += data
        if self._waiting or self._scheduled:
            return
        try:
            asyncio.get_running_loop().call_soon(self._pump)
        except RuntimeError:  # no event loop runs yet, or any more
            self._pump()
        else:
            self._scheduled = True

    async def drain(self, seconds: float) -> bool:
        """Wait until all is written; give up if the reader takes nothing for this long."""
        while self._buffer and not self.closed:
            self._progress.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._progress.wait()
            except TimeoutError:
                return False
        return not self.closed

    def finish(self, seconds: float) -> None:
        """Write what is left, waiting for the reader at most this long. Works without a loop."""
        deadline = time.monotonic() + seconds
        while self._buffer and not self.closed:
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                return
            self._write_some()

    def _pump(self) -> None:
        self._scheduled = False
        while self._buffer and not self.closed:
            if not self._poll.poll(0):
                self._wait()
                return
            self._write_some()
        self._stop_waiting()

    def _write_some(self) -> None:
        try:
            written = os.write(self._fd, memoryview(self._buffer)[:_ATOMIC])
        except OSError as error:  # the reader is gone, or the disk behind a redirection is full
            self.closed = True
            self.failure = error
            self._progress.set()
            self._buffer.clear()
            self._stop_waiting()
            self.on_closed()
            return
        del self._buffer[:written]
        self._progress.set()

    def _wait(self) -> None:
        if not self._waiting:
            asyncio.get_running_loop().add_writer(self._fd, self._pump)
            self._waiting = True

    def _stop_waiting(self) -> None:
        if self._waiting:
            asyncio.get_running_loop().remove_writer(self._fd)
            self._waiting = False
