"""Runs a long-lived program with pipes for input and output: an MCP server."""

import asyncio
import os
import signal
from contextlib import suppress

from trimtab.contracts.mcp import Launch
from trimtab.workspace import process_tracking, programs

END_OF_INPUT_SECONDS = 0.7
TERMINATION_SECONDS = 0.7
"""Seconds a program has to exit after its input was closed, and after SIGTERM."""


class PipedProgram(programs.Program):
    """A running program. `stop` also ends everything that it started."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(self._take)
        self._on_output = launch.on_output
        self._on_end = launch.on_end
        self._input = -1
        self._unsent = bytearray()
        self._start(launch.argv, launch.cwd, launch.env)

    @property
    def errors(self) -> bytes:
        return bytes(self._errors)

    @property
    def unsent(self) -> int:
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        if self._input < 0:
            return
        waiting = bool(self._unsent)
        self._unsent += data
        if not waiting:
            self._writable()

    async def stop(self) -> None:
        self._on_end = lambda: None
        self._close_input()
        try:
            if self._code is None and not await self._ends_within(END_OF_INPUT_SECONDS):
                process_tracking.send(-self._pid, signal.SIGTERM)
                await self._ends_within(TERMINATION_SECONDS)
        finally:
            self._close()
            await asyncio.shield(asyncio.ensure_future(process_tracking.end(self._tag, self._pid)))
            process_tracking.reap(self._pid)

    async def _ends_within(self, seconds: float) -> bool:
        """Wait for the process itself: its children may keep its output open."""
        pause, deadline = 0.002, asyncio.get_running_loop().time() + seconds
        while process_tracking.is_alive(self._pid):
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return True

    def _open_input(self) -> int:
        reading, self._input = os.pipe()
        os.set_blocking(self._input, False)
        return reading

    def _take(self, chunk: bytes) -> bool:
        self._on_output(chunk)
        return True

    def _note(self, chunk: bytes) -> bool:
        """Keep the last error output, which matters in a long-lived program."""
        self._errors += chunk[-programs.ERRORS :]
        del self._errors[: -programs.ERRORS]
        return True

    def _forget(self, fd: int) -> None:
        super()._forget(fd)
        if not self._done.is_set() and self._sink not in self._readers.values():
            self._done.set()
            self._on_end()

    def _ended(self) -> None:
        """Do nothing: `stop` sees how it ended."""

    def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            del self._unsent[: os.write(self._input, self._unsent[: programs.READ_SIZE])]
        except BlockingIOError:
            pass
        except OSError:  # it no longer reads; its exit shows on its output
            self._close_input()
            return
        if self._unsent:
            loop.add_writer(self._input, self._writable)
        else:
            loop.remove_writer(self._input)

    def _close_input(self) -> None:
        if self._input >= 0:
            asyncio.get_running_loop().remove_writer(self._input)
            with suppress(OSError):
                os.close(self._input)
            self._input = -1
            self._unsent.clear()

    def _close(self) -> None:
        self._done.set()
        self._close_input()
        super()._close()
