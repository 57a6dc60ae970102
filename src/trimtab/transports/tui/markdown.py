"""Renders Markdown while it arrives: finished lines as soon as they are certain, then the tail.

A source line is the unit. A long line of prose is finished row by row as it wraps, a line of code
when it is complete; only a table waits for its end.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from trimtab.transports.tui.cells import Line, Span, line_width, plain, width, wrap
from trimtab.transports.tui.highlight import Highlighter
from trimtab.transports.tui.theme import LINK

INDENT = "  "
HELD_BACK = 600
"""Characters of unfinished markup after which it counts as plain text."""
_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^\s`]*)[^`]*")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(.*)")
_QUOTE = re.compile(r"\s{0,3}>\s?(.*)")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
_TABLE = re.compile(r"\s*\|.*")
_DELIMITERS = re.compile(r"(?=.*-)\s*\|?[\s:|-]+\|?\s*")
_INLINE = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`()\[\]]*[^\s<>\"'`()\[\].,;:!?*_~]")
_LINKABLE = re.compile(r"(?:https?://|mailto:)[!-~]{1,2000}")
_OPENS = {"strong_open": "bold", "em_open": "italic", "s_open": "strike"}
_CLOSES = {"strong_close", "em_close", "s_close", "link_close"}


class Block(msgspec.Struct, frozen=True):
    """A source line: what stands before its text, and the indent of the rows after the first."""

    body: str
    lead: Line = ()
    indent: str = ""
    style: str = ""

    def render(self, spans: Line, limit: int) -> list[Line]:
        return wrap(spans, limit, self.indent)

    def inline(self, text: str) -> Line:
        """Return a piece of the text with its styles."""
        line = render_inline(text)
        return tuple((f"{self.style} {old}".strip(), part) for old, part in line)


class MarkdownStream:
    """One message. `feed` takes text; `take` gives the lines that have become certain."""

    def __init__(self) -> None:
        self._rest = ""
        """The source that has not been rendered."""
        self._block: Block | None = None
        """The long line that is being finished row by row."""
        self._row: Line = ()
        """Its last row so far."""
        self._fence = ""
        self._fence_indent = 0
        self._highlighter: Highlighter | None = None
        self._table: list[str] = []
        self._ready: list[Callable[[int], list[Line]]] = []

    def feed(self, text: str) -> None:
        """Take the next piece of the message."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._end_line(line)

    def end(self) -> None:
        """Finish the message: nothing more follows."""
        if self._rest or self._block is not None:
            rest, self._rest = self._rest, ""
            self._end_line(rest)
        self._end_table()

    def take(self, columns: int) -> list[Line]:
        """Return the lines that are certain and were not returned before."""
        lines = [line for render in self._ready for line in render(columns)]
        self._ready = []
        return lines + self._take_rows(columns)

    def tail(self, columns: int) -> list[Line]:
        """Return the rows of what has arrived and is not certain yet."""
        if self._table:
            return [(("dim", row),) for row in (*self._table, self._rest) if row]
        if self._fence:
            return [(("", self._strip_indent(self._rest)),)] if self._rest else []
        if self._block is not None:
            spans = (*self._row, *self._block.inline(self._rest))
            return self._block.render(spans, _limit(columns))
        return render_line(self._rest, columns) if self._rest else []

    def _take_rows(self, columns: int) -> list[Line]:
        """Return the complete rows of a long line, as far as its markup is closed."""
        if self._block is None:
            if self._fence or self._table or width(self._rest) < columns or _is_special(self._rest):
                return []
            if not self._rest.strip():
                return []
            self._block = read_block(self._rest)
            self._row, self._rest = self._block.lead, self._block.body
        end = find_safe_end(self._rest)
        self._row = (*self._row, *self._block.inline(self._rest[:end]))
        self._rest = self._rest[end:]
        *rows, self._row = self._block.render(self._row, _limit(columns))
        return rows

    def _end_line(self, line: str) -> None:
        if self._block is not None:
            block, row = self._block, self._row
            self._block, self._row = None, ()
            spans = strip_end((*row, *block.inline(line)))
            if spans:  # else all rows of the line were returned before
                self._ready.append(lambda columns: block.render(spans, _limit(columns)))
        elif self._fence:
            self._end_code_line(line)
        elif (fence := _FENCE.fullmatch(line)) is not None:
            self._end_table()
            self._fence, language = fence[2], fence[3]
            self._fence_indent = len(fence[1])
            self._highlighter = Highlighter(language)
            if language:
                self._ready.append(lambda _: [(("dim", language),)])
        elif _TABLE.match(line):
            self._table.append(line)
        else:
            self._end_table()
            self._ready.append(lambda columns: render_line(line, columns))

    def _end_code_line(self, line: str) -> None:
        closing = line.strip()
        if len(closing) >= len(self._fence) and not closing.strip(self._fence[0]):
            self._fence, self._highlighter = "", None
            return
        assert self._highlighter is not None
        coloured = self._highlighter.colour(self._strip_indent(line))
        self._ready.append(lambda _: [coloured if line else ()])

    def _strip_indent(self, line: str) -> str:
        """Return a line of code without the indent of its fence: copying gives the source."""
        return line[: self._fence_indent].lstrip(" ") + line[self._fence_indent :]

    def _end_table(self) -> None:
        if self._table:
            rows, self._table = self._table, []
            self._ready.append(lambda columns: render_table(rows, columns))


def _limit(columns: int) -> int:
    return max(8, columns - 1)


def _is_special(line: str) -> bool:
    """Return True for a line that is rendered as a whole."""
    return bool(_TABLE.match(line) or _FENCE.match(line) or _RULE.fullmatch(line))


def find_safe_end(text: str) -> int:
    """Return the end of the part of a text that later text cannot change.

    It ends before a space, and before all spaces in front of that: a row ends at one of them, and
    which one depends on what follows.
    """
    end = text.rfind(" ", 0, find_open_markup(text))
    return len(text[: max(end, 0)].rstrip(" "))


def find_open_markup(text: str) -> int:
    """Return where the first unfinished piece of markup begins; the length if none is open."""
    closed = 0
    for match in re.finditer(r"`+|\*\*|__|~~|\*|(?<!\w)_|\[", text):
        if match.start() < closed:
            continue
        mark = match[0]
        closing = "]" if mark == "[" else mark
        after = text.find(closing, match.end())
        if after < 0:
            if len(text) - match.start() > HELD_BACK:
                return len(text)
            if mark in "*_" and text[match.end() : match.end() + 1].isspace():
                continue
            return match.start()
        closed = (
            text.find(")", after) + 1 if text[after + 1 : after + 2] == "(" else after + len(mark)
        )
        if not closed:  # the address of a link is not complete
            return match.start()
    return len(text)


def render_line(line: str, columns: int) -> list[Line]:
    """Return a source line outside code and tables as rows."""
    if not line.strip():
        return [()]
    if _RULE.fullmatch(line):
        return [(("dim", "─" * min(_limit(columns), 40)),)]
    block = read_block(line)
    spans = strip_end((*block.lead, *block.inline(block.body)))
    return block.render(spans, _limit(columns))


def strip_end(spans: Line) -> Line:
    """Return spans without the blanks at their end, which could fill a row of their own."""
    *before, last = spans or (("", ""),)
    style, text = last
    if stripped := text.rstrip():
        return (*before, (style, stripped))
    return strip_end(tuple(before)) if before else ()


def read_block(line: str) -> Block:
    """Return what a source line is: a heading, an item of a list, a quotation or plain text."""
    if (heading := _HEADING.fullmatch(line)) is not None:
        return Block(heading[2], style="heading")
    if (item := _ITEM.fullmatch(line)) is not None:
        lead = f"{item[1]}{'•' if item[2] in '-*+' else item[2]} "
        return Block(item[3], (("accent", lead),), " " * width(lead))
    if (quote := _QUOTE.fullmatch(line)) is not None:
        return Block(quote[1], (("dim", "│ "),), "│ ", "italic")
    indent = line[: len(line) - len(line.lstrip())]
    return Block(line.lstrip(), (("", indent),) if indent else (), indent)


def render_inline(text: str) -> Line:
    """Return a text with the styles of its inline markup."""
    if not re.search(r"[`*_~\[<&\\!]", text):
        return tuple(_link_addresses("", text))
    body = text.strip()
    before, after = text[: text.index(body)], text[text.index(body) + len(body) :]
    tokens = _INLINE.parseInline(body)[0].children or []
    spans: list[Span] = [("", before)] if before else []
    styles: list[str] = []
    target = ""
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href") or "")
            styles.append(style_link(target))
        elif token.type in _OPENS:
            styles.append(_OPENS[token.type])
        elif token.type in _CLOSES and styles:
            styles.pop()
            if token.type == "link_close" and target and target not in plain(spans):
                spans.append(("dim", f" ({target})"))
        elif token.type == "text" and not any(style.startswith("link") for style in styles):
            spans += _link_addresses(" ".join(styles), token.content)
        else:
            spans.append(_content(token, styles))
    return (*spans, ("", after)) if after else tuple(spans)


def style_link(address: str) -> str:
    """Return the style of a link. The terminal is given the addresses of pages and of mail only."""
    return f"link {LINK}{address}" if _LINKABLE.fullmatch(address) else "link"


def _link_addresses(style: str, text: str) -> Iterator[Span]:
    """Yield a text with the addresses in it as links, which stay whole when rows break."""
    end = 0
    for match in _ADDRESS.finditer(text):
        if match.start() > end:
            yield style, text[end : match.start()]
        yield f"{style} {style_link(match[0])}".strip(), match[0]
        end = match.end()
    if end < len(text) or not text:
        yield style, text[end:]


def _content(token: Token, styles: Iterable[str]) -> Span:
    style = " ".join(styles)
    if token.type == "code_inline":
        return f"{style} code".strip(), token.content
    if token.type == "image":
        return style, f"[{token.content}] ({token.attrGet('src')})"
    if token.type in ("softbreak", "hardbreak"):
        return style, " "
    return style, token.content


def _styled(line: Line, style: str) -> Line:
    return tuple((f"{style} {old}".strip(), text) for old, text in line)


def render_table(rows: list[str], columns: int) -> list[Line]:
    """Return a table with aligned columns; if it is too wide, each row as a list."""
    cells = [split_cells(row) for row in rows if not _DELIMITERS.fullmatch(row)]
    has_header = len(rows) > 1 and bool(_DELIMITERS.fullmatch(rows[1]))
    count = max((len(row) for row in cells), default=0)
    if not count:
        return [(("", row),) for row in rows]
    rendered = [[render_inline(cell) for cell in row] for row in cells]
    widths = [
        max((line_width(row[index]) for row in rendered if index < len(row)), default=0)
        for index in range(count)
    ]
    if sum(widths) + 2 * (count - 1) > columns - 1:
        return _as_lists(rendered, columns, has_header=has_header)
    lines: list[Line] = []
    for number, row in enumerate(rendered):
        spans: list[Span] = []
        for index, content in enumerate(row):
            style = "bold" if has_header and number == 0 else ""
            spans += _styled(content, style) if style else content
            if index < len(row) - 1:
                spans.append(("", " " * (widths[index] - line_width(content) + 2)))
        lines.append(tuple(spans))
        if has_header and number == 0:
            rule = "  ".join("─" * max(1, size) for size in widths)
            lines.append((("dim", rule),))
    return lines


def _as_lists(rows: list[list[Line]], columns: int, *, has_header: bool) -> list[Line]:
    header = rows[0] if has_header and len(rows) > 1 else []
    lines: list[Line] = []
    for number, row in enumerate(rows[1:] if header else rows):
        if number:
            lines.append(())
        for name, content in zip_longest(header, row, fillvalue=()):
            lead = f"{plain(name)}: " if name else ""
            lines += wrap((("bold", lead), *content), max(8, columns - 1), INDENT)
    return lines


def split_cells(row: str) -> list[str]:
    """Return the cells of a table's row; an escaped bar belongs to its cell."""
    text = row.strip().removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", text)]
