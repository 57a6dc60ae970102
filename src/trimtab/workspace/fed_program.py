"""Runs a hook's program with prepared input; the run is over when the program exits."""

import asyncio
import os
import tempfile

from trimtab.contracts.hooks import Ended, Program
from trimtab.workspace import process_tracking, programs


class FedProgram(programs.Program):
    """A run of a program. Processes it leaves behind are killed: they could block its output."""

    def __init__(self, program: Program) -> None:
        super().__init__(self._take)
        self._program = program
        self._output = bytearray()
        self._pidfd = -1

    async def finish(self) -> Ended:
        """Run the program to its end. Raises `OSError` if it cannot be started."""
        given = self._program
        ended = await self.run(given.argv, cwd=given.cwd, env=given.env, seconds=given.seconds)
        if process_tracking.survivors(self._tag, self._pid, recent=True):
            await process_tracking.end(self._tag, self._pid)
        return Ended(
            exit_code=ended.exit_code,
            output=bytes(self._output),
            errors=ended.errors,
            timed_out=ended.timed_out,
        )

    def _take(self, chunk: bytes) -> bool:
        line_start = self._output.rfind(b"\n") + 1
        self._output += chunk
        if self._program.on_line is not None and b"\n" in chunk:
            for line in self._output[line_start:].split(b"\n")[:-1]:
                self._program.on_line(bytes(line))
        return len(self._output) <= self._program.limit

    def _open_input(self) -> int:
        # A file, not a pipe: a program that does not read it can neither block us nor fail.
        with tempfile.TemporaryFile() as file:
            file.write(self._program.input)
            file.flush()
            file.seek(0)
            return os.dup(file.fileno())

    def _start(self, *args: object) -> None:
        super()._start(*args)  # type: ignore[arg-type]
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self._pid)
            asyncio.get_running_loop().add_reader(self._pidfd, self._exited)

    def _exited(self) -> None:
        """Read what is left in the pipes, without waiting for others that keep them open."""
        self._close_pidfd()
        if not self._done.is_set():
            self._read_rest()
        if self._code is None:
            self._ended()

    def _close(self) -> None:
        self._close_pidfd()
        super()._close()

    def _close_pidfd(self) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
