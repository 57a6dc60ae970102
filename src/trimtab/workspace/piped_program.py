"""Runs a long-lived program with pipes for input and output: an MCP server, another agent."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from trimtab.contracts.mcp import Launch
from trimtab.workspace import process_tracking, programs

END_OF_INPUT_SECONDS = 0.7
TERMINATION_SECONDS = 0.7
"""Seconds a program has to exit after its input was closed, and after SIGTERM."""


class PipedProgram(programs.Program):
    """A running program. `stop` also ends everything that it started."""

    def __init__(
        self,
        launch: Launch,
        confinement: programs.Confined | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`say` takes what the sandbox has to say about connections."""
        super().__init__(self._take, confinement)
        self._say = say
        self._on_output = launch.on_output
        self._on_end = launch.on_end
        self._input = -1
        self._unsent = bytearray()
        self._closing_input = False
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

    async def stop(
        self, patience: float = END_OF_INPUT_SECONDS, grace: float = TERMINATION_SECONDS
    ) -> None:
        """End it: close its input, then SIGTERM after `patience`, then SIGKILL after `grace`."""
        self._on_end = lambda: None
        self._close_input()
        try:
            if self._code is None and not await self._ends_within(patience):
                process_tracking.send(-self._pid, signal.SIGTERM)
                await self._ends_within(grace)
        finally:
            self._close()
            await asyncio.shield(asyncio.ensure_future(process_tracking.end(self._tag, self._pid)))
            self._reap()
            released, self._released = self._released, lambda: None
            released()

    @property
    def is_alive(self) -> bool:
        return process_tracking.is_alive(self._pid)

    @property
    def exit_code(self) -> int | None:
        """The exit code once it was stopped; None if it was not ours to see."""
        return self._code

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)

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
            self._read_rest()  # its last words, which say why it ended
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
            if self._closing_input:
                self._close_input()

    def close_input(self) -> None:
        """Close its input once everything written to it is sent."""
        self._closing_input = True
        if not self._unsent:
            self._close_input()

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
