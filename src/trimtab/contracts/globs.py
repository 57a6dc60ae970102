"""Translates glob patterns: `*`, `?`, `[abc]`, `{a,b}` and `**` across directories."""

import re

WILD = {"*": "[^/]*", "?": "[^/]", "{": "(?:"}
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
    return "".join(parts)


def translate(pattern: str, at: int, open_braces: int) -> tuple[str, int]:
    """One element of a pattern, and where the next one starts."""
    char = pattern[at]
    if pattern.startswith("**", at):
        leads = pattern.startswith("/", at + 2) and (at == 0 or pattern[at - 1] in "/{,")
        return ("(?:[^/]+/)*", at + 3) if leads else (".*", at + 2)
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        inside = pattern[at + 1 : end].replace("\\", "\\\\")
        negated = inside[0] in "!^"
        return f"[{'^/' if negated else ''}{inside[negated:]}]", end + 1
    if char == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    meaning = WILD | (IN_BRACES if open_braces else {})
    return meaning.get(char) or re.escape(char), at + 1
