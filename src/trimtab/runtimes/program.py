"""The running program of a runtime: its lines, its input, and the end of everything it started."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.mcp import Launch
from trimtab.workspace.piped_program import PipedProgram

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined

MAX_LINE = 64 * 1024 * 1024
"""The length in bytes above which a line is dropped."""
_MAX_NOISE = 64 * 1024
_LOOK_SECONDS = 0.5
"""The interval in which a program that closed nothing is looked at: is it still there?"""
_EXIT_SECONDS = 3.0
"""The time a program has to exit by itself after its result."""
_TERM_SECONDS = 0.15
"""The time between SIGTERM and SIGKILL when a run is cancelled."""


class RuntimeProgram:
    """Runs a program. `end` kills it with all its descendants, also those that left its group."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        confinement: "Confined | None" = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._lines: list[bytes] = []
        self._rest = bytearray()
        self._skipping = False
        self.dropped = 0
        """The number of lines that were too long to be read."""
        self._news = asyncio.Event()
        self._closed = False
        launch = Launch(
            argv=tuple(argv), cwd=cwd, env=env, on_output=self._take, on_end=self._close
        )
        try:
            self._program = PipedProgram(launch, confinement, say)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"{argv[0]} could not be started: {reason}; check the program."
            ) from None

    @property
    def exit_code(self) -> int | None:
        return self._program.exit_code

    @property
    def errors(self) -> bytes:
        """The last bytes that it wrote to standard error."""
        return self._program.errors

    def write(self, data: bytes) -> None:
        self._program.write(data)

    def close_input(self) -> None:
        self._program.close_input()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of its output until it closes it or exits."""
        while True:
            for line in self._take_lines():
                yield line
            if self._lines:
                continue  # they came while others were read
            if self._closed:
                return
            self._news.clear()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                if not self._program.is_alive:  # others keep its output open
                    self._close()

    async def settle(self) -> None:
        """Wait until it exits after its result, then end what it left behind."""
        await self._program.stop(patience=_EXIT_SECONDS, grace=_TERM_SECONDS)

    async def end(self) -> None:
        """End it and everything it started, now."""
        await self._program.stop(patience=0.0, grace=_TERM_SECONDS)

    def _take(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._rest += part
            if self._skipping or len(self._rest) > MAX_LINE:
                self._drop()
            elif self._rest.strip():
                self._lines.append(bytes(self._rest))
            self._rest.clear()
            self._skipping = False
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            self._rest.clear()
            self._skipping = True
        self._news.set()

    def _drop(self) -> None:
        self.dropped += 1

    def _close(self) -> None:
        if self._rest.strip() and not self._skipping:
            self._lines.append(bytes(self._rest))
            self._rest.clear()
        self._closed = True
        self._news.set()

    def _take_lines(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        return lines


def read_line(line: bytes) -> Any:
    """Return the JSON object of a line, or its text if it holds none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        text = line.decode("utf-8", "replace")
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return text[:_MAX_NOISE]
    return value if isinstance(value, dict) else line.decode("utf-8", "replace")[:_MAX_NOISE]
