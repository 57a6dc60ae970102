"""Positions of the protocol: lines from 0, and UTF-16 code units in a line."""

import os
import re
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from trimtab.contracts.language import LanguageProblem

_LINE_ENDS = re.compile("\r\n|\r|\n")


def path_to_uri(path: str) -> str:
    return "file://" + quote(os.path.abspath(path))


def uri_to_path(uri: Any) -> str:
    """Return the path of a file's address. Raises `LanguageProblem`."""
    parts = urlsplit(uri) if isinstance(uri, str) else None
    if parts is None or parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise LanguageProblem(f"the server named {str(uri)[:200]!r}, which is not a file.")
    path = unquote(parts.path)
    if "\0" in path or not path.startswith("/"):
        raise LanguageProblem(f"the server named {str(uri)[:200]!r}, which is not a file.")
    return os.path.normpath(path)


def line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _LINE_ENDS.finditer(text))]


def find_offset(text: str, starts: list[int], position: Any) -> int:
    """Return the offset of a position in a text. Raises `LanguageProblem`."""
    line = position.get("line") if isinstance(position, dict) else None
    units = position.get("character") if isinstance(position, dict) else None
    if not isinstance(line, int) or not isinstance(units, int) or line < 0 or units < 0:
        raise LanguageProblem("the server sent a position that makes no sense.")
    if line >= len(starts):
        if line == len(starts) and units == 0:
            return len(text)
        raise LanguageProblem("the server sent a position after the end of the file.")
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    content = _LINE_ENDS.split(text[starts[line] : end])[0]
    if content.isascii():
        return starts[line] + min(units, len(content))
    offset = 0
    while units > 0 and offset < len(content):
        units -= 2 if ord(content[offset]) > 0xFFFF else 1
        offset += 1
    return starts[line] + offset


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def locate(text: str, line: int | None, symbol: str) -> dict[str, int]:
    """Return the position of a symbol in a line, or its first one in the text.

    Raises `LanguageProblem` if it is not there.
    """
    lines = _LINE_ENDS.split(text)
    if line is not None and not 1 <= line <= len(lines):
        raise LanguageProblem(f"the file has {len(lines)} lines, so there is no line {line}.")
    candidates = enumerate(lines) if line is None else [(line - 1, lines[line - 1])]
    if not symbol:
        if line is None:
            raise LanguageProblem("name a symbol or a line of the file.")
        return {"line": line - 1, "character": utf16_length(lines[line - 1]) // 2}
    pattern = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    for number, content in candidates:
        if (match := pattern.search(content)) is not None:
            return {"line": number, "character": utf16_length(content[: match.start()])}
    where = "the file" if line is None else f"line {line}"
    raise LanguageProblem(f"{symbol!r} is not in {where}; view it to find the line.")
