"""The installed program in a pseudo-terminal, its bytes fed to an emulator with scrollback."""

import asyncio
import fcntl
import os
import pty
import random
import re
import struct
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import pyte

from clikit import TRIMTAB, Cli

SECONDS = 60
FORBIDDEN = ("\x1b[2J", "\x1b[3J", "\x1b[6n", "\x1b[?1049h", "\x1b[?47h", "\x1b[?1000h")
"""What the interface must never send: clearing the screen, queries, the alternate screen."""


class Emulator:
    """A terminal with scrollback. `text` is all of it: what scrolled off and what is visible."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self._scrolled: list[str] = []

    def feed(self, data: bytes) -> None:
        # pyte prints the letters of these: it does not know saving the title.
        self._stream.feed(re.sub(rb"\x1b\[2[23];2t", b"", data))

    @property
    def visible(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def scrolled(self) -> list[str]:
        """The rows that have scrolled off, oldest first. They never change, so they are kept."""
        columns = self.screen.columns
        top = self.screen.history.top
        for row in islice(top, len(self._scrolled), len(top)):
            self._scrolled.append("".join(row[column].data for column in range(columns)).rstrip())
        return self._scrolled

    @property
    def text(self) -> str:
        return "\n".join([*self.scrolled, *self.visible]).rstrip()


class Terminal:
    """The person's side: the keyboard and the screen."""

    def __init__(self, master: int, process: asyncio.subprocess.Process, size: tuple[int, int]):
        self.master = master
        self.process = process
        self.emulator = Emulator(*size)
        self.bytes = bytearray()
        self.reading = True
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
        self.bytes += data
        self.emulator.feed(data)
        self._changed.set()

    def stop_reading(self) -> None:
        """Become a terminal that takes nothing."""
        asyncio.get_running_loop().remove_reader(self.master)

    def go_on_reading(self) -> None:
        asyncio.get_running_loop().add_reader(self.master, self._read)

    @property
    def text(self) -> str:
        return self.emulator.text

    @property
    def visible(self) -> str:
        return "\n".join(self.emulator.visible).rstrip()

    def _is_painting(self) -> bool:
        """Return True in the midst of a frame, when rows of two frames stand side by side."""
        begun, ended = (self.bytes.rfind(mark) for mark in (b"\x1b[?2026h", b"\x1b[?2026l"))
        return begun > ended and self.process.returncode is None

    async def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait until something holds for the screen."""
        try:
            async with asyncio.timeout(SECONDS):
                while self._is_painting() or not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what} is not shown; there is:\n{self.text}") from None

    async def shows(self, pattern: str) -> None:
        """Wait until a pattern is on the screen or in the scrollback."""
        await self.until(lambda: re.search(pattern, self.text), repr(pattern))

    async def sees(self, pattern: str) -> None:
        """Wait until a pattern is visible."""
        await self.until(lambda: re.search(pattern, self.visible), repr(pattern))

    async def hides(self, pattern: str) -> None:
        """Wait until a pattern is not visible any more."""
        await self.until(lambda: not re.search(pattern, self.visible), f"the end of {pattern!r}")

    async def ready(self) -> None:
        """Wait for the editor of an open session."""
        await self.sees("Ask anything")

    async def may_answer(self) -> None:
        """Wait until the keys of a question are bright: the guard of 400 ms has passed."""
        await self.until(self._has_bright_keys, "a question that takes keys")

    def _has_bright_keys(self) -> bool:
        """Return True if a row of choices is bright; a copy in the scrollback never is."""
        screen = self.emulator.screen
        rows = enumerate(self.emulator.visible)
        found = ((row, re.match(r"(?:▸ |  )(\d)(?:/y)?  ", line)) for row, line in rows)
        return any(match and screen.buffer[row][match.start(1)].bold for row, match in found)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    async def send(self, text: str) -> None:
        """Type more than the terminal takes at once, as a large paste is."""
        data = text.encode()
        while data:
            data = data[await asyncio.to_thread(os.write, self.master, data[:1024]) :]

    def resize(self, columns: int, rows: int) -> None:
        self.emulator.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def ends(self) -> int:
        async with asyncio.timeout(SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def open_terminal(
    cli: Cli, *args: str, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Terminal]:
    """Start the program in a terminal of this size; it is killed if it has not ended."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    cli.env.setdefault("TERM", "xterm-256color")
    process = await asyncio.create_subprocess_exec(
        TRIMTAB,
        *args,
        cwd=cli.cwd,
        env=cli.env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    terminal = Terminal(master, process, size)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
    sent = terminal.bytes.decode("utf-8", "replace")
    assert not [sequence for sequence in FORBIDDEN if sequence in sent]
    assert "\nTraceback" not in terminal.text, terminal.text


@asynccontextmanager
async def conversing(
    cli: Cli, *args: str, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Terminal]:
    """Open a conversation and leave it with Ctrl-D at its end; it must end with code 0."""
    async with open_terminal(cli, *args, size=size) as terminal:
        yield terminal
        terminal.type("\x04")
        assert await terminal.ends() == 0, terminal.text


def prompts(server: Any) -> list[str]:
    """What people were sent to the model as having said, in order."""
    said = server.requests[-1].json["messages"]
    texts = [message["content"] for message in said if message["role"] == "user"]
    return [text.partition("</current_datetime>\n\n")[2] or text for text in texts]


WORD = re.compile(r"w\d+x")


async def type_at_random(
    terminal: Terminal, keystrokes: int, seed: int
) -> tuple[set[str], set[str]]:
    """Type numbered words, send, queue, take back and cancel them at random.

    Returns the words that were typed, and those of them that were sent or queued.
    """
    chance = random.Random(seed)
    typed: set[str] = set()
    sent: set[str] = set()
    draft: set[str] = set()
    pressed = 0
    while pressed < keystrokes:
        text = "".join(f"w{len(typed) + number}x " for number in range(chance.randint(1, 12)))
        words = set(WORD.findall(text))
        typed |= words
        draft |= words
        await terminal.send(text)
        pressed += len(text) + 1
        action = chance.choices(("\r", "\x11", "\x03", "up", ""), (4, 3, 2, 2, 1))[0]
        if action == "\x03":
            await terminal.send("\x03")  # stops the turn, or clears the draft into the history
            draft = set()
        elif action == "up":
            await terminal.send("\x11\x1b[A")  # queue it and take it back
            sent |= draft
        elif action:
            await terminal.send(action)
            sent |= draft
            draft = set()
        if chance.random() < 0.1:
            await asyncio.sleep(0.05)
    await terminal.send("\r")
    return typed, sent
