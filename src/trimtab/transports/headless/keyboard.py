"""Reads lines of any length from a terminal; pasted text is one line."""

import asyncio
import codecs
import os
import re
import select
import termios
import unicodedata
from collections.abc import Callable

from trimtab.transports.headless.output import Output

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O])")
"""An escape sequence: a special key, or the start or end of pasted text."""
_TOKENS = re.compile(rf"{_KEY.pattern}|\x1b(?:\[[0-?]*[ -/]*|O)?$|[^\x1b]+")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
KEY_GAP = 0.03
"""Seconds without input after Enter that show that it was not pasted."""
PASTE_GAP = 0.15
"""The same after input that is too fast for typing."""
PASTED = 16
"""Characters that arrive together only in pasted text."""
QUIET = 0.5
"""Seconds without input after which a person is assumed to have read the output."""
LONG_QUIET = 1.5
"""The same if the person had begun a line."""


class Keyboard:
    """Reads lines without blocking the event loop, and echoes them while a line is awaited.

    The line mode of the terminal is switched off, because it cuts lines at 4,095 characters, and
    the marking of pasted text is switched on. In terminals that cannot mark it, lines that arrive
    together count as pasted together. Text typed while no line is awaited is not echoed: a whole
    line goes to `on_ahead` (None at the end of input), an unfinished one begins the next line.
    """

    def __init__(self, fd: int, screen: Output, *, tidy: Callable[[], object]) -> None:
        """`tidy` ends the last row of the screen."""
        self._fd = fd
        self._screen = screen
        self._tidy = tidy
        self.on_ahead: Callable[[str | None], None] = lambda _: None
        self.line = ""
        """The text typed since the last Enter."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._burst = 0
        self._pasting = False
        self._typed_at = 0.0
        self._enter: asyncio.TimerHandle | None = None
        self._reader: asyncio.Future[str | None] | None = None
        self._mark = ""
        self._shown = False
        self._closed = False
        self._line_mode = termios.tcgetattr(fd)
        self._marks_pastes = os.environ.get("TERM", "dumb") != "dumb"

    def start(self) -> None:
        """Put the terminal into character mode and begin to read."""
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSANOW, mode)
        if self._marks_pastes:
            self._write(PASTE_ON)
        if not self._closed:
            asyncio.get_running_loop().add_reader(self._fd, self.collect)

    def stop(self) -> None:
        """Restore the mode of the terminal."""
        asyncio.get_running_loop().remove_reader(self._fd)
        if self._marks_pastes:
            self._write(PASTE_OFF)
        self._screen.finish(1.0)
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, self._line_mode)
        except termios.error:
            self._closed = True  # the terminal is gone

    async def read(self, mark: str) -> str | None:
        """Show a mark and return the line that is typed after it; None at the end of input."""
        if self._closed:
            return None
        reader: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._reader = reader
        self._mark = mark
        self.show()
        try:
            return await reader
        finally:
            self._reader = None
            self._shown = False

    async def answer(self, question: str, mark: str, text: str = "") -> str | None:
        """Show a question and return a line that was begun after it was shown.

        `text` is the beginning of that line, which the person may change.
        The mark appears once nothing has been typed for a moment. A line begun before that is
        kept and restored afterwards. Empty lines are ignored.
        """
        self.collect()
        self._tidy()
        self._write(question)
        await self._quiet()
        begun, self.line = self.line, text
        if begun:
            self._write("(your unfinished line is kept for the next prompt)\n")
        try:
            while (line := await self.read(mark)) is not None and not line.strip():
                pass
            return line
        finally:
            self.line = begun + self.line  # what an answer from elsewhere interrupted is kept

    def show(self) -> None:
        """Print the mark and the line typed so far."""
        self._tidy()
        self._write(self._mark + _visible(self.line))
        self._shown = True

    def give_way(self) -> None:
        """Make room for other output; the mark is shown again below it."""
        if self._shown:
            self._shown = False
            self._write("\n")
            asyncio.get_running_loop().call_soon(self._show_again)

    def clear(self) -> None:
        """Discard the line typed so far, and show the mark again."""
        self.line, self._pasting = "", False
        if self._shown:
            self._write("^C\n")
            self.show()

    def collect(self) -> None:
        """Read all input that is available."""
        while not self._closed and select.select([self._fd], [], [], 0)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                data = b""
            if data:
                self._feed(self._decoder.decode(data))
            else:
                self._close()

    def _close(self) -> None:
        self._closed = True
        asyncio.get_running_loop().remove_reader(self._fd)
        self._deliver(None)

    async def _quiet(self) -> None:
        """Wait until the person pauses: while typing they do not read."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not self._closed:
            pause = LONG_QUIET if self.line else QUIET
            left = pause - (loop.time() - max(began, self._typed_at))
            if left <= 0 and self._enter is None:
                return
            await asyncio.sleep(max(left, KEY_GAP))

    def _show_again(self) -> None:
        if self._reader is not None and not self._shown:
            self.show()

    def _feed(self, text: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._rest == "\x1b" and now - self._typed_at > KEY_GAP:
            self._rest = ""  # the Escape key alone
        self._typed_at = now
        self._burst = len(text)
        text, self._rest = self._rest + text, ""
        for token in _TOKENS.findall(text):
            if token == PASTE_BEGINS:
                self._pasting = True
            elif token == PASTE_ENDS:
                self._pasting = False
            elif not token.startswith("\x1b"):
                self._type(token)
            elif not _KEY.fullmatch(token):
                self._rest = token  # an incomplete escape sequence

    def _type(self, text: str) -> None:
        """Handle text without escape sequences."""
        if self._pasting:
            self._add(_INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
            return
        for piece in re.findall(r"[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]", text):
            if piece in ("\n", "\r"):
                self._press_enter()
            elif piece in ("\x7f", "\x08"):
                self._erase(1)
            elif piece == "\x15":
                self._erase(len(self.line))
            elif piece == "\x17":
                self._erase(len(self.line) - len(re.sub(r"\S*\s*$", "", self.line)))
            elif piece == "\x04" and not self.line:
                self._deliver(None)
            elif piece.isprintable() or piece == "\t":
                self._add(piece)

    def _add(self, text: str) -> None:
        if self._enter is not None:  # input that follows at once was pasted
            self._enter.cancel()
            self._enter = None
        self.line += text
        if self._shown:
            self._write(_visible(text))

    def _press_enter(self) -> None:
        self._add("\n")
        gap = PASTE_GAP if self._burst > PASTED else KEY_GAP
        self._enter = asyncio.get_running_loop().call_later(gap, self._end_line)

    def _end_line(self) -> None:
        self._enter = None
        text, self.line = self.line.removesuffix("\n"), ""
        self._deliver(text)

    def _deliver(self, text: str | None) -> None:
        self._shown = False
        if self._reader is None:
            self.on_ahead(text)
            return
        reader, self._reader = self._reader, None
        if text is None:
            self._write("\n")
        if not reader.done():
            reader.set_result(text)

    def _erase(self, number: int) -> None:
        if self._enter is not None or not number:
            return
        kept, gone = self.line[:-number], self.line[-number:]
        row = self._mark + self.line
        self.line = kept
        if not self._shown or not gone:
            return
        if "\n" in row or _width(row) >= self._columns():
            # The cursor cannot move to an earlier row, so the line is printed again below.
            self._write("\n")
            self.show()
        else:
            self._write("\b \b" * _width(gone))

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._fd).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        self._screen.write(text.encode("utf-8", "replace"))


def _visible(text: str) -> str:
    return text.replace("\t", "    ")


def _width(text: str) -> int:
    """Return the columns a text takes on the screen."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in _visible(text)
    )
