"""What models call the tools of servers: one name each, for as long as a session lives."""

import re

LONGEST = 64


class ToolNames:
    """Gives out names. One that is taken gets a number, and nobody loses a name again."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, server: str, tool: str) -> str:
        key = server, tool
        if key not in self._names:
            self._names[key] = self._find_free(sanitize(f"{server}-{tool}"))
        return self._names[key]

    def _find_free(self, name: str) -> str:
        free, number = name, 1
        while free in self._taken:
            number += 1
            suffix = f"-{number}"
            free = name[: LONGEST - len(suffix)] + suffix
        self._taken.add(free)
        return free


def sanitize(name: str) -> str:
    """A name that every model service takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST]
