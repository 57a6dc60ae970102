"""Styled text and its width in terminal cells: measuring, clipping and wrapping."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from wcwidth import wcwidth

Span = tuple[str, str]
"""A style (names separated by spaces, see `theme`) and a text without control characters."""
Line = tuple[Span, ...]
"""A line of styled text."""

TAB = 4
"""The cells of a tab in rows that are painted; finished lines keep their tabs."""
ELLIPSIS = "…"


@lru_cache(4096)
def cell(character: str) -> int:
    """Return the cells that a character takes: 0, 1 or 2."""
    return max(0, wcwidth(character))


def width(text: str) -> int:
    """Return the cells that a text takes, counting a tab as `TAB` cells.

    Terminals disagree about joined emoji; every character counts for itself, which is never less
    than what a terminal shows.
    """
    if text.isascii():
        return len(text) + (TAB - 1) * text.count("\t")
    return sum(TAB if character == "\t" else cell(character) for character in text)


def line_width(line: Iterable[Span]) -> int:
    """Return the cells that a line takes."""
    return sum(width(text) for _, text in line)


def plain(line: Iterable[Span]) -> str:
    """Return the text of a line without its styles."""
    return "".join(text for _, text in line)


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of a text that fits into this many cells."""
    if text.isascii() and "\t" not in text:
        return text[: max(0, limit)]
    used = 0
    for index, character in enumerate(text):
        used += TAB if character == "\t" else cell(character)
        if used > limit:
            return text[:index]
    return text


def clip(line: Iterable[Span], limit: int) -> Line:
    """Return a line that fits into this many cells; an ellipsis marks what was cut off."""
    spans = tuple((style, text.replace("\t", " " * TAB)) for style, text in line)
    if line_width(spans) <= limit:
        return spans
    kept: list[Span] = []
    left = limit - 1
    for style, text in spans:
        piece = cut(text, left)
        kept.append((style, piece))
        left -= width(piece)
        if piece != text:
            break
    return (*kept, ("dim", ELLIPSIS)) if limit > 0 else ()


def wrap(line: Iterable[Span], limit: int, indent: str = "") -> list[Line]:
    """Return a line as rows of at most this many cells, broken at spaces where possible.

    Rows after the first begin with `indent`. The space at a break is dropped, nothing else.
    """
    limit = max(limit, 2)
    if width(indent) > limit - 2:
        indent = ""
    rows: list[Line] = []
    row: list[Span] = []
    used, begun = 0, False
    for style, whole in _words(line):
        word, size = whole, width(whole)
        if used + size > limit and begun:
            rows.append(_without_end_space(row))
            row, used, begun = [("", indent)] if indent else [], width(indent), False
            if word == " ":
                continue
        while used + size > limit:
            piece = cut(word, limit - used)
            if not piece and used:  # a wide character after an indent that fills the row
                row, used = [], 0
                continue
            piece = piece or word[:1]
            rows.append((*row, (style, piece)))
            word = word[len(piece) :]
            row, used = [("", indent)] if indent else [], width(indent)
            size = width(word)
        if word:
            row.append((style, word))
            used += size
            begun = begun or word != " "
    if row or not rows:
        rows.append(tuple(row))
    return rows


def _without_end_space(row: list[Span]) -> Line:
    if row and row[-1][1].isspace():
        row = row[:-1]
    return tuple(row)


def _words(line: Iterable[Span]) -> Iterator[Span]:
    """Yield the words of a line and the spaces between them; tabs become spaces."""
    for style, text in line:
        word = ""
        for character in text.replace("\t", " " * TAB):
            if character == " ":
                if word:
                    yield style, word
                yield style, character
                word = ""
            else:
                word += character
        if word:
            yield style, word
