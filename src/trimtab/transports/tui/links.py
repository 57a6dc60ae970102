"""Makes addresses and paths in finished lines links of the terminal (OSC 8)."""

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from trimtab.transports.tui.cells import Line, Span
from trimtab.transports.tui.theme import LINK

WITHOUT_LINKS = frozenset(("linux", "vt100", "vt220", "cons25"))
"""Terminals that show the command for a link as text."""
MAX_LINE = 2000
"""Cells of a line in which links are looked for."""
_FOUND = re.compile(
    r"(?P<address>https?://[!-~]*[A-Za-z0-9/=#&_~%-])"
    r"|(?P<path>(?<![\w/.~@+-])~?[\w.@+/-]*\w)(?P<line>:\d+)?"
)
"""No group may repeat within a repeated one: a long word without an end would take for ever."""
_LIKE_A_FILE = re.compile(r"/|[\w@+-]\.\w")


def has_links(env: Mapping[str, str]) -> bool:
    """Return True unless the terminal is known to lack links."""
    return env.get("TERM", "") not in WITHOUT_LINKS


class Links:
    """Marks what is found in a line. A path is marked if a file of that name exists."""

    def __init__(self, cwd: str, home: str) -> None:
        self._cwd = cwd
        self._home = home

    def mark(self, line: Line) -> Line:
        if sum(len(text) for _, text in line) > MAX_LINE:
            return line
        return tuple(marked for span in line for marked in self._mark_span(span))

    def _mark_span(self, span: Span) -> list[Span]:
        style, text = span
        if LINK in style or not ("." in text or "/" in text):
            return [span]
        spans: list[Span] = []
        at = 0
        for found in _FOUND.finditer(text):
            address = found["address"] or self._find_file(found["path"] or "")
            if not address:
                continue
            spans += [(style, text[at : found.start()])] if found.start() > at else []
            spans.append((f"{style} {LINK}{address}".strip(), found[0]))
            at = found.end()
        return [*spans, (style, text[at:])] if at < len(text) else spans

    def _find_file(self, name: str) -> str:
        """Return the address of a file; empty if there is none."""
        if not _LIKE_A_FILE.search(name):
            return ""
        expanded = self._home + name[1:] if name.startswith("~/") else name
        path = os.path.normpath(os.path.join(self._cwd, expanded))
        try:
            found = os.path.exists(path)
        except ValueError:
            found = False
        return f"file://{os.uname().nodename}{quote(path)}" if found else ""


def find_last_address(texts: Iterable[str]) -> str:
    """Return the last address in the first of the texts that has one; empty if none has."""
    for text in texts:
        if found := [match["address"] for match in _FOUND.finditer(text) if match["address"]]:
            return found[-1]
    return ""
