"""Shows the output of a command while it runs; of much output, its end now and then."""

import asyncio
import codecs
from collections.abc import Callable

SHOWN_WHOLE = 64 * 1024
"""Bytes of the output that are shown as they arrive."""
SHOWN_END = 4096
"""Bytes at the end of what arrived meanwhile that are shown afterwards."""
PAUSE = 0.2
"""Seconds between these."""
LEFT_OUT = "\n…\n"


class LiveOutput:
    """Passes output on in whole characters, without the flood that some commands print."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._room = SHOWN_WHOLE
        self._end = b""
        self._cut = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        """Take output that has arrived."""
        now, later = chunk[: self._room], chunk[self._room :]
        self._room -= len(now)
        if now and (text := self._decode(now)):
            self._show(text)
        if not later:
            return
        self._cut = self._cut or len(self._end) + len(later) > SHOWN_END
        self._end = (self._end + later[-SHOWN_END:])[-SHOWN_END:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self.show_end)

    def show_end(self) -> None:
        """Show the end of what has arrived since the last time."""
        self.close()
        end, cut = self._end, self._cut
        self._end, self._cut = b"", False
        if not end:
            return
        if cut:
            self._decode(b"", final=True)  # the bytes of a character that goes on in what is cut
            end = end[end.find(b"\n") + 1 :]  # from the beginning of a line, if it has one
        if text := self._decode(end):
            self._show(f"{LEFT_OUT}{text}" if cut else text)

    def close(self) -> None:
        """Show nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
