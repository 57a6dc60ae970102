"""What a glob pattern says outright: where to begin, how deep to go, which names to look for."""

SPECIAL = frozenset("*?[{")


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
    simple = name.count("{") == name.count("}") and not set("[\\:").intersection(name)
    return name if simple and name.strip("*") else None
