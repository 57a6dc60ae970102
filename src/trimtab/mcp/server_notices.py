"""Notices of MCP servers: lines of their logs, and resources that have changed."""

from collections import deque
from collections.abc import Callable

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import EventData, JsonObject
from trimtab.contracts.events.own import McpResourceUpdated
from trimtab.contracts.events.session import SessionInfo, SessionWarning
from trimtab.contracts.text import neutralise

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
DEFAULT_LEVEL = "warning"
MAX_LINES = 100
"""Lines of one server that a session shows; a server in a loop must not fill the log."""
MAX_KEPT = 200
MAX_LENGTH = 1000
MAX_UPDATES = 1000


def find_log_level(server: McpServer) -> str:
    """Return the lowest level of log lines that are shown; "" if none are."""
    level = server.extra.get("logLevel", DEFAULT_LEVEL)
    return level if level in LEVELS else "" if level == "off" else DEFAULT_LEVEL


class ServerNotices:
    """Turns the notices of a session's servers into events, within limits."""

    def __init__(
        self,
        emit: Callable[[EventData], object],
        on_update: Callable[[str, str], None],
    ) -> None:
        """`on_update` is called with a server and the address of a resource that has changed."""
        self._emit = emit
        self._on_update = on_update
        self.levels: dict[str, str] = {}
        """Levels that replace those of the servers' entries, by name."""
        self.kept: dict[str, deque[str]] = {}
        """The last lines of each server, also those that are not shown."""
        self._lines: dict[str, int] = {}
        self._updates: dict[str, int] = {}

    def show(self, server: McpServer, method: str, params: JsonObject) -> None:
        if method == "notifications/message":
            self._show_line(server, params)
        elif method == "notifications/resources/updated":
            self._show_update(server.name, params)

    def _show_line(self, server: McpServer, params: JsonObject) -> None:
        lowest, level = self.find_level(server), params.get("level")
        level = level if level in LEVELS else DEFAULT_LEVEL
        logger = params.get("logger")
        name = f"{server.name} ({logger[:50]})" if isinstance(logger, str) else server.name
        message = f"{neutralise(name)}: {level}: {_read_text(params.get('data'))}"
        self.kept.setdefault(server.name, deque(maxlen=MAX_KEPT)).append(message)
        if not lowest or LEVELS.index(level) < LEVELS.index(lowest):
            return
        shown = self._lines[server.name] = self._lines.get(server.name, 0) + 1
        if shown > MAX_LINES:
            return
        if shown == MAX_LINES:
            message += "; further lines are not shown, see /mcp logs"
        if LEVELS.index(level) < LEVELS.index("warning"):
            self._emit(SessionInfo(info_type="mcp_log", message=message))
        else:
            self._emit(SessionWarning(warning_type="mcp_log", message=message))

    def find_level(self, server: McpServer) -> str:
        """Return the lowest level that is shown in this session; "" if none is."""
        return self.levels.get(server.name) or find_log_level(server)

    def _show_update(self, server: str, params: JsonObject) -> None:
        uri = params.get("uri")
        made = self._updates[server] = self._updates.get(server, 0) + 1
        if isinstance(uri, str) and made <= MAX_UPDATES:
            uri = neutralise(uri[:MAX_LENGTH])
            self._emit(McpResourceUpdated(server_name=server, uri=uri))
            self._on_update(server, uri)


def _read_text(data: object) -> str:
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode("utf-8", "replace")
    return " ".join(neutralise(text).split())[:MAX_LENGTH]
