"""Translates glob patterns to regular expressions: `*`, `?`, `[abc]`, `{a,b}`, and `**`."""

import re
from itertools import pairwise

STAR, STARS, FOLDERS = "[^/]*", ".*", "(?:[^/]+/)*"
WILD = {"*": STAR, "?": "[^/]", "{": "(?:"}
FLAT = (STAR, WILD["?"])
"""Wildcards that do not match a slash."""
IN_BRACES = {",": "|", "}": ")"}


def to_regex(pattern: str) -> str:
    """Return the regular expression that matches the same paths. Raises `re.error`."""
    parts: list[str] = []
    at = open_braces = 0
    while at < len(pattern):
        piece, at = translate(pattern, at, open_braces)
        open_braces += piece == "(?:"
        open_braces -= piece == ")"
        parts.append(piece)
    if open_braces:
        raise re.error("a brace is not closed")
    return "".join(parts if "(?:" in parts else without_backtracking(parts))


def without_backtracking(parts: list[str]) -> list[str]:
    """Return the parts without the alternatives that make matching exponential.

    The text between two stars may match at its first occurrence: the second star absorbs whatever
    follows, unless it crosses fewer directories than the first. The same holds for the names
    between two `**/`.
    """
    result: list[str] = []
    stars = [at for at, part in enumerate(parts) if part in (STAR, STARS)]
    following = dict(pairwise(stars))
    at = 0
    while at < len(parts):
        part, end = parts[at], following.get(at)
        if part == FOLDERS and result[-1:] == [FOLDERS]:
            at += 1
        elif part == FOLDERS and has_names(names := parts[at + 1 : find_folders(parts, at + 1)]):
            result.append(f"(?>{FOLDERS}?{''.join(without_backtracking(names))})")
            at += 1 + len(names)
        elif end is None or FOLDERS in parts[at:end] or (part, parts[end]) == (STARS, STAR):
            result.append(part)
            at += 1
        else:
            result.append(f"(?>{part}?{''.join(parts[at + 1 : end])})")
            at = end
    return result


def find_folders(parts: list[str], at: int) -> int:
    """Return the index of the next `**/`; `at` if there is none."""
    return parts.index(FOLDERS, at) if FOLDERS in parts[at:] else at


def has_names(parts: list[str]) -> bool:
    """Return True if the parts match a fixed number of folders with nonempty names."""
    if not parts or any(part == STARS or (part[0] == "[" and part not in FLAT) for part in parts):
        return False
    is_named = False
    for part in parts:
        if part == "/" and not is_named:
            return False
        is_named = part not in ("/", STAR) or (is_named and part == STAR)
    return True


def translate(pattern: str, at: int, open_braces: int) -> tuple[str, int]:
    """Translate the element at an index; return it and the index of the next."""
    char = pattern[at]
    if pattern.startswith("**", at):
        is_prefix = pattern.startswith("/", at + 2) and (at == 0 or pattern[at - 1] in "/{,")
        return (FOLDERS, at + 3) if is_prefix else (STARS, at + 2)
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        inside = pattern[at + 1 : end].replace("\\", "\\\\")
        negated = inside[0] in "!^"
        return f"[{'^/' if negated else ''}{inside[negated:]}]", end + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    meaning = WILD | (IN_BRACES if open_braces else {})
    return meaning.get(char) or re.escape(char), at + 1
