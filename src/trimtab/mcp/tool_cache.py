"""Keeps the tools of MCP servers between sessions, so that nobody waits for them.

A list belongs to a server's name, its whole configuration and the account that is signed in.
"""

import os
from binascii import crc32
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.config.files import make_private_dir, read_regular, replace_file
from trimtab.config.paths import Home
from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import TrimtabError
from trimtab.mcp.listed_tools import Listing
from trimtab.version import __version__

FOLDER = "mcp-tool-cache"
NOT_COUNTED = ("file", "source", "enabled", "fields", "digest")


class CachedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it was when it was connected last."""

    version: str
    instructions: str = ""
    capabilities: Mapping[str, Any] = {}
    listing: Listing = Listing()
    holds_until: float = 0.0
    """The seconds since the epoch until which the server says that its list holds."""


class ToolCache:
    """The lists of one home. `identify` names the account that is signed in to a server."""

    def __init__(self, home: Home, identify: Callable[[McpServer], str]) -> None:
        self._folder = os.path.join(home.state, FOLDER)
        self._identify = identify

    def read(self, server: McpServer) -> CachedServer | None:
        """Return what is known of a server; None if nothing is, or it is damaged."""
        if server.extra.get("disableToolCache") is True:
            return None
        try:
            data = read_regular(self._path(server))
            return msgspec.json.decode(data, type=CachedServer)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, TrimtabError):
            return None

    def write(self, server: McpServer, known: CachedServer) -> None:
        """Keep what is known of a server. A cache that cannot be written is only slower."""
        if server.extra.get("disableToolCache") is True:
            return
        with suppress(OSError, TrimtabError):
            make_private_dir(self._folder)
            replace_file(self._path(server), msgspec.json.encode(known))

    def _path(self, server: McpServer) -> str:
        config = msgspec.to_builtins(server)
        for name in NOT_COUNTED:
            del config[name]
        identity = "" if server.type == "local" else self._identify(server)
        key = msgspec.json.encode([config, identity, __version__], order="sorted")
        # A start waits for this, and loading hashlib takes longer than all the rest of it.
        name = f"{crc32(key):08x}{crc32(key[::-1]):08x}{len(key):x}"
        return os.path.join(self._folder, f"{name}.json")
