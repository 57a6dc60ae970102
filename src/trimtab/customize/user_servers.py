"""The person's own MCP servers in `mcp-config.json`, and the list of disabled servers."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.config.edit import change_field, read_object
from trimtab.config.paths import Home
from trimtab.contracts.errors import UsageError

KEY = "mcpServers"
DISABLED = "disabledMcpServers"


class UserServers:
    """Reads and changes the file. Entries of other servers are kept as they are."""

    def __init__(self, home: Home) -> None:
        self.path = os.path.join(home.config, "mcp-config.json")
        self._settings = home.settings

    def entries(self) -> dict[str, Any]:
        servers = read_object(self.path).get(KEY)
        return servers if isinstance(servers, dict) else {}

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write a new server. Raises `UsageError` if the name is in use."""
        servers = self.entries()
        if name in servers:
            raise UsageError(f"The MCP server {name!r} already exists; remove it first.")
        self._save({**servers, name: dict(entry)})

    def update(self, name: str, entry: Mapping[str, Any]) -> None:
        self._find(name)
        self._save({**self.entries(), name: dict(entry)})

    def remove(self, name: str) -> None:
        self._find(name)
        self._save({key: value for key, value in self.entries().items() if key != name})

    def switch(self, names: Iterable[str], *, enabled: bool) -> None:
        """Enable or disable servers, also those of other files."""
        wanted = set(names)
        listed = read_object(self._settings).get(DISABLED)
        before = listed if isinstance(listed, list) else []
        kept = [name for name in before if isinstance(name, str) and name not in wanted]
        change_field(self._settings, DISABLED, kept if enabled else [*kept, *sorted(wanted)])

    def _find(self, name: str) -> None:
        if name not in self.entries():
            raise UsageError(f"MCP server {name!r} not found in {self.path}; see `trimtab mcp`.")

    def _save(self, servers: Mapping[str, Any]) -> None:
        change_field(self.path, KEY, servers)
