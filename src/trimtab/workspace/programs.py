"""Runs helper programs (search, git): no shell, no input, bounded in time and output."""

import asyncio
import os
import select
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from trimtab.workspace import process_tracking

if TYPE_CHECKING:
    from trimtab.workspace.sandbox.confinement import Start

READ_SIZE = 1 << 16
ERRORS = 8192
LAST_READS = 256
"""Limit of reads from a pipe after the end: more is left only if others keep writing."""

Sink = Callable[[bytes], bool]
"""Takes a piece of output; returns False to get no more."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a program. `exit_code` is None if it was stopped, for time or by its sink."""

    exit_code: int | None
    errors: bytes
    timed_out: bool = False


class Confined(Protocol):
    """Starts programs with fewer rights than this one has."""

    def spawn(self, start: "Start") -> tuple[int, Callable[[], None]]:
        """Start a program; return its process id and a function to call when it has ended."""
        ...


class Program:
    """A run of a program."""

    def __init__(self, sink: Sink, confinement: Confined | None = None) -> None:
        self._sink = sink
        self._confinement = confinement
        self._released: Callable[[], None] = lambda: None
        self._say: Callable[[str], None] | None = None
        """Takes remarks of the sandbox; a program without it has no network there."""
        self._errors = bytearray()
        self._pid = 0
        self._tag: int | None = None
        self._done = asyncio.Event()
        self._readers: dict[int, Callable[[bytes], bool]] = {}
        self._code: int | None = None

    async def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], seconds: float
    ) -> Finished:
        """Run the program to its end. Raises `OSError` if it cannot be started."""
        self._start(argv, cwd, env)
        timed_out = False
        try:
            async with asyncio.timeout(seconds):
                await self._done.wait()
        except TimeoutError:
            timed_out = True
        finally:
            self._close()
            if self._code is None:
                await process_tracking.end(self._tag, self._pid)
                process_tracking.reap(self._pid)
            self._released()
        return Finished(exit_code=self._code, errors=bytes(self._errors), timed_out=timed_out)

    def _start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        stdin = self._open_input()
        out, child_out = os.pipe()
        err, child_err = os.pipe()
        self._readers = {out: self._sink, err: self._note}
        self._tag = process_tracking.new_tag()
        try:
            streams = (stdin, child_out, child_err)
            if self._confinement is None:
                self._pid = process_tracking.spawn(
                    argv, cwd=cwd, env=env, streams=streams, tag=self._tag
                )
            else:
                from trimtab.workspace.sandbox.confinement import Start

                start = Start(
                    argv=argv, cwd=cwd, env=env, streams=streams, tag=self._tag, say=self._say
                )
                self._pid, self._released = self._confinement.spawn(start)
        except BaseException:
            self._close()
            raise
        finally:
            for fd in (stdin, child_out, child_err):
                os.close(fd)
        loop = asyncio.get_running_loop()
        for fd in (out, err):
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._readable, fd)

    def _open_input(self) -> int:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _readable(self, fd: int) -> None:
        try:
            chunk = os.read(fd, READ_SIZE)
        except BlockingIOError:
            return
        wanted = bool(chunk) and self._readers[fd](chunk)
        if not chunk:
            self._forget(fd)
        elif not wanted:
            self._done.set()
        if not self._readers:
            self._ended()

    def _ended(self) -> None:
        """Both streams are closed: the program has ended, or is about to."""
        if self._code is not None:
            return  # a subclass that watches the process saw it end first
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            pid, status = self._pid, 0
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
            self._done.set()
        else:
            asyncio.get_running_loop().call_later(0.001, self._ended)

    def _note(self, chunk: bytes) -> bool:
        self._errors += chunk[: ERRORS - len(self._errors)]
        return True

    def _read_rest(self) -> None:
        """Read what is in the pipes already, without waiting for more."""
        done = self._done.is_set()
        for fd in list(self._readers):
            for _ in range(LAST_READS):
                wanted = fd in self._readers and self._done.is_set() == done
                if wanted and select.select([fd], [], [], 0)[0]:
                    self._readable(fd)

    def _forget(self, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        del self._readers[fd]
        os.close(fd)

    def _close(self) -> None:
        for fd in list(self._readers):
            self._forget(fd)
