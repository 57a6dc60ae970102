"""Turns finished lines and live rows into the bytes that bring a terminal up to date.

Finished lines are written once, above the live rows, and scroll into the terminal's history by
themselves. Only the live rows are ever painted again. The whole screen is never erased.
"""

from collections.abc import Sequence

import msgspec

from trimtab.transports.tui.cells import Line, clip, line_width
from trimtab.transports.tui.theme import Theme, encode

BEGIN = "\x1b[?25l\x1b[?2026h"
END = "\x1b[?2026l\x1b[?25h"
WRAP_OFF, WRAP_ON = "\x1b[?7l", "\x1b[?7h"
WIPE_REST, WIPE_ROW = "\x1b[K", "\x1b[2K"


class Frame(msgspec.Struct, frozen=True):
    """The live rows, and the caret in them: its row, and its column in cells."""

    rows: tuple[Line, ...]
    caret: tuple[int, int]


class Painter:
    """Knows what is on the screen, and returns the bytes for the next frame."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._shown: tuple[str, ...] = ()
        self._widths: tuple[int, ...] = ()
        self._caret = (0, 0)
        self._columns = 0
        self._size = (0, 0)

    def paint(self, finished: Sequence[Line], frame: Frame, columns: int, height: int = 0) -> str:
        """Return what writes the finished lines and replaces the live rows; empty if nothing.

        In a window of another size everything is painted again: a terminal that becomes lower may
        cut off the rows below the cursor.
        """
        resized, self._size = self._size != (columns, height), (columns, height)
        rows = [clip(row, columns - 1) for row in frame.rows]
        texts = tuple(encode(row, self.theme) for row in rows)
        caret = min(frame.caret[0], max(0, len(rows) - 1)), min(frame.caret[1], columns - 1)
        start = self._to_first_row(columns)
        repaint = bool(finished or start or resized)
        if not repaint and texts == self._shown and caret == self._caret:
            return ""
        body, taken = self._write_finished(finished, columns)
        body += self._write_rows(texts, repaint=repaint, taken=taken)
        up = max(0, max(len(texts), len(self._shown) - taken) - 1) - caret[0]
        body += (f"\x1b[{up}A" if up > 0 else "") + "\r"
        body += f"\x1b[{caret[1]}C" if caret[1] else ""
        lead = start or self._up(self._caret[0])
        self._shown, self._caret = texts, caret
        self._widths = tuple(line_width(row) for row in rows)
        self._columns = columns
        return f"{BEGIN}\r{lead}{body}{END}"

    def erase(self) -> str:
        """Return what removes the live rows and leaves the cursor where they began."""
        if not self._shown:
            return ""
        wiped = f"\r\n{WIPE_ROW}" * (len(self._shown) - 1)
        text = f"\r{self._up(self._caret[0])}{WIPE_ROW}{wiped}\r{self._up(len(self._shown) - 1)}"
        self.forget()
        return text

    def forget(self) -> None:
        """Assume nothing about the screen: paint the next frame from the cursor down."""
        self._shown, self._widths, self._caret = (), (), (0, 0)

    def _to_first_row(self, columns: int) -> str:
        """Return what to do after the terminal may have wrapped live rows; empty if it has not.

        How many rows they take now is unknown, and a wrong guess would erase finished lines. So
        the rows above the caret are left behind, and those below it are wiped.
        """
        if not self._shown or columns >= self._columns or max(self._widths) < columns:
            return ""
        below = len(self._shown) * (self._columns // max(1, columns) + 1)
        wipe = "\x1b7" + f"{WIPE_ROW}\x1b[B\r" * below + "\x1b8\r"
        self._shown = ()
        return wipe

    @staticmethod
    def _up(rows: int) -> str:
        return f"\x1b[{rows}A" if rows > 0 else ""

    def _write_finished(self, finished: Sequence[Line], columns: int) -> tuple[str, int]:
        """Return the lines for the scrollback, and how many of the old live rows they cover."""
        if not finished:
            return "", 0
        texts = [encode(line, self.theme) for line in finished]
        if all(
            line_width(line) < columns and "\t" not in text
            for line, text in zip(finished, texts, strict=True)
        ):
            return "".join(f"{text}{WIPE_REST}\r\n" for text in texts), len(texts)
        # A line that wraps covers rows only in part: wipe the old live rows before it.
        count = len(self._shown)
        wipe = WIPE_ROW + f"\r\n{WIPE_ROW}" * (count - 1) + "\r" + self._up(count - 1)
        return (wipe if count else "") + "".join(f"{text}\r\n" for text in texts), count

    def _write_rows(self, texts: tuple[str, ...], *, repaint: bool, taken: int) -> str:
        """Return what paints the rows that differ, and wipes rows that are left over."""
        pieces = []
        for index, text in enumerate(texts):
            same = not repaint and index < len(self._shown) and self._shown[index] == text
            pieces.append("" if same else f"{text}{WIPE_REST}")
        left_over = len(self._shown) - taken - len(texts)
        pieces += [WIPE_ROW] * left_over
        return WRAP_OFF + "\r\n".join(pieces) + WRAP_ON
