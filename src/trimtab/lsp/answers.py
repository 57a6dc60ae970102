"""Turns the answers of language servers into text for a model; answers that make no sense too."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trimtab.contracts.language import LanguageProblem
from trimtab.lsp.positions import uri_to_path

MAX_ROWS = 200
MAX_TEXT = 8000
SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
KINDS = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field"),
    *("constructor", "enum", "interface", "function", "variable", "constant", "string", "number"),
    *("boolean", "array", "object", "key", "null", "member", "struct", "event", "operator", "type"),
)
ReadLine = Callable[[str, int], str]
"""Returns a line of a file by number from 0; empty if it may not be shown."""


class Places:
    """Writes positions as people do: a path below the root, and a line from 1."""

    def __init__(self, root: str, read_line: ReadLine) -> None:
        self._root = root
        self._read_line = read_line

    def show(self, path: str) -> str:
        inside = path.startswith(self._root + os.sep)
        return os.path.relpath(path, self._root) if inside else path

    def describe(self, location: Any) -> str:
        """Return `path:line: text` for a location or a link. Raises `LanguageProblem`."""
        found = location if isinstance(location, dict) else {}
        path = uri_to_path(found.get("targetUri") or found.get("uri"))
        limits = found.get("targetSelectionRange") or found.get("range")
        line = line_of(limits)
        text = self._read_line(path, line).strip()
        return f"{self.show(path)}:{line + 1}{': ' + text[:300] if text else ''}"


def line_of(limits: Any) -> int:
    start = limits.get("start") if isinstance(limits, dict) else None
    line = start.get("line") if isinstance(start, dict) else None
    if not isinstance(line, int) or line < 0:
        raise LanguageProblem("the server sent a position that makes no sense.")
    return line


def show_locations(found: Any, places: Places, none: str) -> str:
    locations = found if isinstance(found, list) else [found] if found else []
    return join_rows(list(dict.fromkeys(map(places.describe, locations[:MAX_ROWS]))), none, found)


def show_hover(found: Any) -> str:
    contents = found.get("contents") if isinstance(found, dict) else None
    parts = contents if isinstance(contents, list) else [contents]
    texts = [part.get("value") if isinstance(part, dict) else part for part in parts]
    shown = "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    return shown[:MAX_TEXT] or "The server knows nothing about this."


def show_symbols(found: Any, places: Places) -> str:
    rows = list(_walk_symbols(found if isinstance(found, list) else [], places, 0))
    return join_rows(rows[:MAX_ROWS], "No symbols.", rows)


def _walk_symbols(symbols: list[Any], places: Places, depth: int) -> Iterator[str]:
    for symbol in symbols if depth < 8 else ():
        if not isinstance(symbol, dict):
            continue
        kind = symbol.get("kind")
        named = KINDS[kind - 1] if isinstance(kind, int) and 0 < kind <= len(KINDS) else "symbol"
        name = str(symbol.get("name"))[:200]
        if "location" in symbol:
            yield f"{named} {name} {places.describe(symbol['location']).split(': ')[0]}"
            continue
        line = line_of(symbol.get("selectionRange") or symbol.get("range"))
        yield f"{'  ' * depth}{line + 1}: {named} {name}"
        children = symbol.get("children")
        if isinstance(children, list):
            yield from _walk_symbols(children, places, depth + 1)


def show_calls(found: Any, places: Places, end: str) -> str:
    rows = []
    for call in found if isinstance(found, list) else []:
        item = call.get(end) if isinstance(call, dict) else None
        if not isinstance(item, dict):
            continue
        path = places.show(uri_to_path(item.get("uri")))
        line = line_of(item.get("selectionRange") or item.get("range"))
        rows.append(f"{str(item.get('name'))[:200]} {path}:{line + 1}")
    return join_rows(rows[:MAX_ROWS], "No calls.", rows)


def show_diagnostics(found: Sequence[Any], none: str) -> str:
    rows = [describe_diagnostic(item) for item in found]
    return join_rows(rows[:MAX_ROWS], none, rows)


def describe_diagnostic(item: Any) -> str:
    severity = SEVERITIES.get(item.get("severity"), "error")
    code = item.get("code")
    message = " ".join(str(item.get("message")).split())[:500]
    try:
        line = str(line_of(item.get("range")) + 1)
    except LanguageProblem:
        line = "?"
    return f"{line}: {severity}: {message}{f' [{code}]' if code else ''}"


def join_rows(rows: Sequence[str], none: str, found: Any) -> str:
    if not rows:
        return none
    more = len(found) - MAX_ROWS if isinstance(found, list) else 0
    return "\n".join((*rows, *((f"<{more} more>",) if more > 0 else ())))
