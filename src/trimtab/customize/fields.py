"""Reads fields of front matter under the names of every vendor, and collects problems."""

from collections.abc import Mapping
from typing import Any

from trimtab.contracts.customization import Problem


def split_names(text: str) -> list[str]:
    """Split a text at its commas, but not in parentheses and braces: `*.{c,d}`."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "({":
            depth += 1
        elif character in ")}":
            depth = max(0, depth - 1)
        elif character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


class Fields:
    """The fields of a file. A wrong type is a problem, and so is a field that nobody reads."""

    def __init__(self, values: Mapping[str, Any], path: str, head: str = "") -> None:
        """`head` is the source of the values; problems take their line numbers from it."""
        self._values = values
        self._path = path
        self._head = head
        self._read: set[str] = set()
        self.problems: list[Problem] = []

    @property
    def given(self) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(self._values)

    def text(self, *names: str) -> str:
        value = self._take(names)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        self._note_type(names[0], "text")
        return ""

    def flag(self, *names: str, default: bool) -> bool:
        value = self._take(names)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        self._note_type(names[0], "true or false")
        return default

    def names(self, *names: str) -> tuple[str, ...] | None:
        """Return a list, also if it is written as one comma-separated text."""
        value = self._take(names)
        if value is None:
            return None
        if isinstance(value, str):
            return tuple(split_names(value))
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._note_type(names[0], "a list of names")
        return None

    def items(self, *names: str) -> list[Any] | None:
        """Return a list; None if the value is not a list."""
        value = self._take(names)
        return value if isinstance(value, list) else None

    def object(self, *names: str) -> Mapping[str, Any]:
        value = self._take(names)
        if value is None:
            return {}
        if isinstance(value, dict):
            return {str(key): item for key, item in value.items()}
        self._note_type(names[0], "an object")
        return {}

    def ignore(self, reasons: Mapping[str, str]) -> None:
        """Add a problem for each field that is known and has no effect; `reasons` says why."""
        for name in self._values:
            if name in reasons:
                self._read.add(name)
                self.note(f"{name} has no effect: {reasons[name]}", name)

    def finish(self) -> tuple[Problem, ...]:
        """Return all problems, including those for unknown fields."""
        for name in self._values:
            if name not in self._read:
                self.note(f"the field {name} is not known and has no effect", name)
        return tuple(self.problems)

    def _take(self, names: tuple[str, ...]) -> Any:
        found = None
        for name in names:
            if name in self._values:
                self._read.add(name)
                found = self._values[name] if found is None else found
        return found

    def _note_type(self, name: str, expected: str) -> None:
        self.note(f"{name} is ignored: it must be {expected}", name)

    def note(self, message: str, name: str = "") -> None:
        """Add a problem, with the line of the field `name`."""
        line = 0
        if name:
            lines = self._head.split("\n")
            line = next(
                (number for number, text in enumerate(lines, 2) if text.startswith(name + ":")), 0
            )
        problem = Problem(message=message, file=self._path, line=line, note=True, field=name)
        self.problems.append(problem)
