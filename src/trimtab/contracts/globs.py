"""Translates glob patterns: `*`, `?`, `[abc]`, `{a,b}` and `**` across directories."""

import re
from itertools import pairwise

STAR, STARS, FOLDERS = "[^/]*", ".*", "(?:[^/]+/)*"
WILD = {"*": STAR, "?": "[^/]", "{": "(?:"}
IN_BRACES = {",": "|", "}": ")"}


def to_regex(pattern: str) -> str:
    """The regular expression that matches the same paths."""
    parts: list[str] = []
    at = open_braces = 0
    while at < len(pattern):
        piece, at = translate(pattern, at, open_braces)
        open_braces += piece == "(?:"
        open_braces -= piece == ")"
        parts.append(piece)
    if open_braces:
        raise re.error("a brace is not closed")
    return "".join(parts if "(?:" in parts else hasten(parts))


def hasten(parts: list[str]) -> list[str]:
    """The same without the choices that make matching take for ever.

    What stands between two stars may be taken where it is first found: the second star makes up
    for all that comes later, unless it crosses fewer directories than the first.
    """
    found: list[str] = []
    stars = [at for at, part in enumerate(parts) if part in (STAR, STARS)]
    following = dict(pairwise(stars))
    at = 0
    while at < len(parts):
        part, end = parts[at], following.get(at)
        if part == FOLDERS and found[-1:] == [FOLDERS]:
            at += 1
        elif end is None or FOLDERS in parts[at:end] or (part, parts[end]) == (STARS, STAR):
            found.append(part)
            at += 1
        else:
            found.append(f"(?>{part}?{''.join(parts[at + 1 : end])})")
            at = end
    return found


def translate(pattern: str, at: int, open_braces: int) -> tuple[str, int]:
    """One element of a pattern, and where the next one starts."""
    char = pattern[at]
    if pattern.startswith("**", at):
        leads = pattern.startswith("/", at + 2) and (at == 0 or pattern[at - 1] in "/{,")
        return (FOLDERS, at + 3) if leads else (STARS, at + 2)
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        inside = pattern[at + 1 : end].replace("\\", "\\\\")
        negated = inside[0] in "!^"
        return f"[{'^/' if negated else ''}{inside[negated:]}]", end + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    meaning = WILD | (IN_BRACES if open_braces else {})
    return meaning.get(char) or re.escape(char), at + 1
