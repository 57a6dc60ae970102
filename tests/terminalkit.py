"""The installed program in a pseudo-terminal of 80 by 24: what a person sees and types."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from clikit import TRIMTAB, Cli

TRACES = ("Traceback", "Internal error", "Exception ignored")


class Terminal:
    """The master side of the pseudo-terminal."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.seen = ""
        self._changed = asyncio.Event()
        self._mark = 0
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
        self.seen += data.decode("utf-8", "replace")
        self._changed.set()

    @property
    def news(self) -> str:
        """What was shown since `forget` was called."""
        return self.seen[self._mark :]

    def forget(self) -> None:
        """Let `shows` look only at what comes from now on."""
        self._mark = len(self.seen)

    async def shows(self, pattern: str) -> None:
        """Wait until the pattern is on the screen, at most 20 seconds."""
        try:
            async with asyncio.timeout(60):
                while not re.search(pattern, self.news):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{pattern!r} is not shown; there is:\n{self.news}") from None

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    async def send(self, text: str) -> None:
        """Type more than the terminal takes at once, as a large paste is."""
        await asyncio.to_thread(self._write_all, text.encode())

    def _write_all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.master, data) :]


async def start(
    cli: Cli,
    *args: str,
    pair: tuple[int, int] | None = None,
    program: Sequence[str] = (),
    plain: bool = True,
) -> tuple[asyncio.subprocess.Process, Terminal]:
    """Start the program as the leader of a terminal's session, through another one if need be.

    It talks in plain lines unless `plain` is false.
    """
    master, slave = pair or pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    cli.env.setdefault("TERM", "xterm-256color")
    process = await asyncio.create_subprocess_exec(
        *(program or (TRIMTAB,)),
        *args,
        *(("--plain",) if plain else ()),
        cwd=cli.cwd,
        env=cli.env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    return process, Terminal(master)


@asynccontextmanager
async def talking(cli: Cli, *args: str) -> AsyncIterator[Terminal]:
    """A conversation, left with Ctrl-D at its prompt; it must end well and show no traceback."""
    process, terminal = await start(cli, *args)
    try:
        yield terminal
        terminal.type("\x04")
        async with asyncio.timeout(60):
            assert await process.wait() == 0, terminal.seen
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert not [trace for trace in TRACES if trace in terminal.seen], terminal.seen
