"""Expands variables in configuration: `$VAR`, `${VAR}`, `${VAR:-default}`, `${workspaceFolder}`."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


class Expansion:
    """Replaces the variables in a value, and collects the names of those that are not set."""

    def __init__(self, env: Mapping[str, str], folder: str) -> None:
        self._env = env
        self._folder = folder
        self.missing: dict[str, None] = {}

    def fill(self, value: Any) -> Any:
        """Return the value with the variables in its strings replaced; keys are not changed."""
        if isinstance(value, str):
            return _variable().sub(self._replace, value) if "$" in value else value
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        return value

    def _replace(self, match: re.Match[str]) -> str:
        name = match["plain"] or match["name"].removeprefix("env:")
        if name in ("workspaceFolder", "CLAUDE_PROJECT_DIR") and name not in self._env:
            return self._folder
        value = self._env.get(name)
        default = match["default"]
        if default is not None:
            return value or default
        if value is None:
            self.missing[name] = None
        return value or ""


@lru_cache(1)
def _variable() -> re.Pattern[str]:
    return re.compile(
        r"\$(?:(?P<plain>[A-Za-z_]\w*)"
        r"|\{(?P<name>(?:env:|input:)?[A-Za-z_][\w-]*)(?::-(?P<default>[^}]*))?\})"
    )
