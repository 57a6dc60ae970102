"""The terminal device: raw mode, writing without blocking, and leaving it as it was."""

import asyncio
import os
import select
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Attributes = list[Any]
"""The state of a terminal, as `termios` represents it."""
MODES_ON = "\x1b[?2004h\x1b[?1004h"
"""Asks for marks around pasted text, and for reports of the focus."""
MODES_OFF = "\x1b[?1004l\x1b[?2004l"
RESTORE = "\x1b[?2026l\x1b[?7h\x1b[?25h"
NO_STYLE = "\x1b[0m"


class Screen:
    """Writes to the terminal. What it cannot take at once waits; `drained` says when it has.

    The terminal is opened a second time, because making the shared descriptor non-blocking would
    change it for the shell and for child processes too. `encode` replaces what it cannot show.
    """

    def __init__(
        self,
        fd: int,
        attributes: Attributes | None,
        encode: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._attributes = attributes
        self._input = fd
        self._fd = os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        self._encode = encode
        self._styled = False
        self._buffer = bytearray()
        self._waiting = False
        self.drained: Callable[[], None] = lambda: None
        """Called when everything is written after the terminal was too slow."""
        self.closed = False

    @property
    def busy(self) -> bool:
        """True while the terminal has not taken all that was written."""
        return bool(self._buffer)

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the window."""
        try:
            columns, rows = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return columns or 80, rows or 24

    def write(self, text: str) -> None:
        """Write a text; what the terminal does not take now is written when it can."""
        self._styled = self._styled or NO_STYLE in text
        self._buffer += self._encode(text).encode("utf-8", "replace")
        self._pump()

    def _pump(self) -> None:
        while self._buffer and not self.closed:
            try:
                written = os.write(self._fd, self._buffer)
            except BlockingIOError:
                break
            except OSError:  # the terminal is gone
                self.closed = True
                self._buffer.clear()
                break
            del self._buffer[:written]
        loop = asyncio.get_running_loop()
        if self._buffer and not self._waiting:
            self._waiting = True
            loop.add_writer(self._fd, self._pump)
        elif not self._buffer and self._waiting:
            self._waiting = False
            loop.remove_writer(self._fd)
            self.drained()

    def begin(self) -> None:
        """Tell the terminal what to report."""
        self.write(MODES_ON)

    def restore(self) -> None:
        """Leave the terminal as it was found, whatever is still waiting to be written."""
        style = NO_STYLE if self._styled else ""
        text = self._buffer + (RESTORE + style + MODES_OFF).encode()
        self._buffer.clear()
        with suppress(OSError):
            write_bounded(self._fd, bytes(text))
        if self._attributes is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._input, termios.TCSADRAIN, self._attributes)

    def close(self) -> None:
        """Restore the terminal and close our own descriptor of it."""
        if self._waiting:
            with suppress(RuntimeError):
                asyncio.get_running_loop().remove_writer(self._fd)
        self.restore()
        self.closed = True
        with suppress(OSError):
            os.close(self._fd)


def write_bounded(fd: int, data: bytes, seconds: float = 2.0) -> None:
    """Write all data if the terminal takes it in time: a stopped one must not keep the program."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    deadline = time.monotonic() + seconds
    while data and (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
        data = data[os.write(fd, data) :]
