"""Translates glob patterns: `*`, `?`, `[abc]`, `{a,b}` and `**` across directories."""

import re

SPECIAL = frozenset("*?[{")
WILD = {"*": "[^/]*", "?": "[^/]", "{": "(?:"}
IN_BRACES = {",": "|", "}": ")"}


def split_base(pattern: str) -> tuple[str, str]:
    """The directories a pattern names outright, and the rest that must be matched."""
    pattern = pattern.removeprefix("./")
    if pattern.endswith("/"):
        pattern += "**"
    parts = pattern.split("/")
    fixed = 0
    while fixed < len(parts) - 1 and not SPECIAL.intersection(parts[fixed]):
        fixed += 1
    base = "/".join(parts[:fixed])
    return base or ("/" if fixed else ""), "/".join(parts[fixed:])


def depth(pattern: str) -> int | None:
    """How many levels deep a pattern can match, or None for any."""
    return None if "**" in pattern or "{" in pattern else pattern.count("/") + 1


def plain_name(pattern: str) -> str | None:
    """The last part of a pattern if it says what names files have, in the way ripgrep means it."""
    name = pattern.rpartition("/")[2]
    simple = name.count("{") == name.count("}") and not set("[\\").intersection(name)
    return name if simple and name.strip("*") else None


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
