"""Converts HTML to Markdown: headings, lists, links, code, tables."""

import re
import time
from html.parser import HTMLParser
from urllib.parse import urljoin

SKIPPED = frozenset(
    ("script", "style", "noscript", "template", "svg", "iframe", "object", "head", "canvas")
)
BLOCKS = frozenset(
    (
        *("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "figure"),
        *("ul", "ol", "dl", "table", "blockquote", "form", "fieldset", "address", "details"),
    )
)
LINES = frozenset(("dt", "dd", "tr", "figcaption", "summary", "option"))
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "del": "~~"}
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))

TIMEOUT = 5.0
CHUNK = 1 << 16
MAX_REST = 10_000
"""Characters that the parser may keep unread at the end; more are an unclosed comment."""
MAX_DEPTH = 20
CUT = "\n\n<the page takes too long to convert: the rest is left out>"


def to_markdown(html: str, url: str, seconds: float = TIMEOUT) -> str:
    """Convert a page, within about `seconds`: pages may be built to keep a parser busy."""
    reader = Reader(url)
    deadline = time.monotonic() + seconds
    for at in range(0, len(html), CHUNK):
        if time.monotonic() > deadline:
            return reader.text() + CUT
        reader.feed(html[at : at + CHUNK])
    if len(reader.rawdata) < MAX_REST:
        reader.close()
    return reader.text()


class Reader(HTMLParser):
    """Collects pieces of text; blank lines are reduced at the end."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._pieces: list[str] = []
        self._skipping: list[str] = []
        self._link: tuple[int, str] | None = None
        self._lists: list[int | None] = []
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping or tag in SKIPPED:
            if tag in SKIPPED and len(self._skipping) < MAX_DEPTH:
                self._skipping.append(tag)
            return
        if tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        if tag in HEADINGS:
            self._pieces.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self._pieces.append(f"\n{self._bullet()}")
        elif tag == "pre":
            self._pre += 1
            self._pieces.append("\n\n```\n")
        else:
            self._inline(tag, dict(attrs))

    def _inline(self, tag: str, attrs: dict[str, str | None]) -> None:
        if tag == "a":
            self._end_link()  # links are not nested
            self._link = len(self._pieces), attrs.get("href") or ""
        elif tag == "img" and attrs.get("alt"):
            self._pieces.append(f"![{attrs['alt']}]")
        elif tag in ("td", "th"):
            self._pieces.append(" | ")
        elif tag in MARKS and not self._pre:
            self._pieces.append(MARKS[tag])
        else:
            self._pieces.append(separator(tag))

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            if tag in self._skipping:
                del self._skipping[self._skipping.index(tag) :]
            return
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        if tag == "a":
            self._end_link()
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self._pieces.append("\n```\n\n")
        elif tag in MARKS and not self._pre:
            self._pieces.append(MARKS[tag])
        else:
            self._pieces.append("\n\n" if tag in HEADINGS else separator(tag))

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._pieces.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _bullet(self) -> str:
        indent = "  " * min(len(self._lists) - 1, MAX_DEPTH)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}- "
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _end_link(self) -> None:
        if self._link is None:
            return
        (start, target), self._link = self._link, None
        label = "".join(self._pieces[start:]).strip()
        if not label or target.startswith(("#", "javascript:")) or not target:
            return
        try:
            address = urljoin(self._url, target)
        except ValueError:
            return
        self._pieces[start:] = [f"[{label}]({address})"]

    def text(self) -> str:
        """Return the text so far, with blank lines and spaces outside code reduced."""
        parts = re.split(r"(\n```\n.*?\n```\n)", "".join(self._pieces), flags=re.DOTALL)
        parts[::2] = [squeeze(part) for part in parts[::2]]
        return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()


def separator(tag: str) -> str:
    if tag in BLOCKS:
        return "\n\n"
    if tag == "hr":
        return "\n\n---\n\n"
    return "\n" if tag in LINES or tag == "br" else ""


def squeeze(text: str) -> str:
    text = re.sub(r"(?<=\S)[ \t]{2,}", " ", text)
    text = re.sub(r"(?<![ \t])[ \t]+\n", "\n", text)
    return re.sub(r"\n ([^ \-\d])", r"\n\1", text)
