"""MCP servers: where a tool of theirs is from, and the ports by which they are reached."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.tool import Tool

Transport = Literal["stdio", "http", "sse"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool of which server a tool is, by the names they have there.

    `read_only` is what the server claims, and `instructions` what it says about its tools: neither
    is more than its word. `source` is where it was configured, in Copilot's words.
    """

    server: str
    tool: str
    transport: Transport
    source: str = "user"
    title: str = ""
    read_only: bool = False
    instructions: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What lists of tools may call it: for itself, or together with its server's others."""
        server, tool = self.server, self.tool
        return (
            *(f"{server}/{tool}", f"{server}/*", f"mcp__{server}__{tool}", f"mcp__{server}"),
            *(f"mcp__{server}__*", f"mcp:{server}", f"mcp:{server}/{tool}"),
        )


_SOURCES = {"repository": "workspace", "plugin": "plugin"}


def config_source(server: McpServer) -> str:
    """Where a server was configured, in Copilot's words."""
    return _SOURCES.get(server.source, "user")


def origin_of(tool: Tool) -> Origin | None:
    """Where a tool of an MCP server is from; None for all others."""
    return getattr(tool, "origin", None)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start that stays: what it writes goes to `on_output` as it comes.

    `on_end` is called once, when it has ended by itself or closed its output.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    on_output: Callable[[bytes], None]
    on_end: Callable[[], None]


class ServerProgram(Protocol):
    """A program that was started."""

    @property
    def errors(self) -> bytes:
        """The end of what it wrote to its standard error."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes it has not taken yet."""
        ...

    def write(self, data: bytes) -> None:
        """Give it input, now or as soon as it reads."""
        ...

    async def stop(self) -> None:
        """End it: its input ends, then it is told, then it and all it started are killed."""
        ...


StartProgram = Callable[[Launch], ServerProgram]
"""Starts a program that is killed, with all it started, should this process die. Raises `OSError`
or `ValueError`."""


class HttpAnswer(Protocol):
    """An answer whose head has arrived; it must be closed."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are in lower case."""
        ...

    async def receive(self) -> bytes:
        """The next bytes of the body; empty when it is complete."""
        ...

    def close(self, *, expect_end: bool = False) -> None: ...


class Http(Protocol):
    """The one way out. Raises `ModelError` for what cannot or may not be reached."""

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes] = ()
    ) -> HttpAnswer: ...


class EventReader(Protocol):
    """Reads server-sent events: bytes in, the data of each event out. Raises `ValueError`."""

    def feed(self, chunk: bytes) -> list[bytes]: ...


class ServerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How servers are reached from a session: `env` is what their programs get besides their own.

    `cwd` is where the session works, which servers may ask for.
    """

    cwd: str
    env: Mapping[str, str]
    start: StartProgram
    http: Callable[[], Http]
    read_events: Callable[[], EventReader]
