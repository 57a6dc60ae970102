"""MCP servers: the origin of their tools, and the ports through which they are reached."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.tool import Tool

Transport = Literal["stdio", "http", "sse"]
TRUSTED_SOURCES = ("user", "flag", "sdk", "plugin", "builtin")
"""Sources of servers that a person or their program chose; a folder cannot supply them."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The MCP server a tool comes from, and the tool's name on that server.

    `read_only` and `instructions` are the server's own claims, which nobody has checked. `source`
    is the place of its configuration, as Copilot names it.
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
        """The names for it in lists of tools: of the tool alone, or of all tools of its server."""
        server, tool = self.server, self.tool
        return (
            *(f"{server}/{tool}", f"{server}/*", f"mcp__{server}__{tool}", f"mcp__{server}"),
            *(f"mcp__{server}__*", f"mcp:{server}", f"mcp:{server}/{tool}"),
        )


_SOURCES = {"repository": "workspace", "plugin": "plugin", "builtin": "builtin"}


def config_source(server: McpServer) -> str:
    """Return the place of a server's configuration, as Copilot names it."""
    return _SOURCES.get(server.source, "user")


def origin_of(tool: Tool) -> Origin | None:
    """Return the origin of an MCP server's tool, or None for other tools."""
    return getattr(tool, "origin", None)


def is_deferred(tool: Tool) -> bool:
    """Return True for a tool that can be called and is not shown to the model yet."""
    return getattr(tool, "deferred", False)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A long-running program to start. `on_output` is called with its output as it arrives.

    `on_end` is called once, when it exits by itself or closes its output.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    on_output: Callable[[bytes], None]
    on_end: Callable[[], None]


class ServerProgram(Protocol):
    """A running server program."""

    @property
    def errors(self) -> bytes:
        """The last bytes it wrote to standard error."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes of input it has not read yet."""
        ...

    def write(self, data: bytes) -> None:
        """Send input, now or as soon as the program reads."""
        ...

    async def stop(self) -> None:
        """Stop it: close its input, then terminate it, then kill it and its descendants."""
        ...


StartProgram = Callable[[Launch], ServerProgram]
"""Starts a program that is killed with its descendants if this process dies. Raises `OSError` or
`ValueError`."""


class HttpAnswer(Protocol):
    """An HTTP response whose head has arrived; it must be closed."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields by name in lower case."""
        ...

    async def receive(self) -> bytes:
        """Return the next bytes of the body; empty at its end."""
        ...

    def close(self, *, expect_end: bool = False) -> None: ...


class Http(Protocol):
    """The only egress. Raises `ModelError` for an address that cannot or may not be reached."""

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes] = ()
    ) -> HttpAnswer: ...


class EventReader(Protocol):
    """Reads server-sent events: bytes in, the data of each event out. Raises `ValueError`."""

    @property
    def last_id(self) -> str:
        """The last id that the stream gave; empty if none."""
        ...

    @property
    def retry(self) -> float | None:
        """The seconds to wait before the stream is taken up again, if it says so."""
        ...

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def end(self) -> list[bytes]:
        """Return the data of a last event without a blank line."""
        ...


class SignIn(Protocol):
    """The sign-in to one server."""

    async def token(self) -> str:
        """Return the token to send, renewed if it is about to expire; empty if there is none."""
        ...

    async def renew(self, status: int, challenge: str, token: str) -> None:
        """Obtain another token after the server refused one, or the lack of one.

        `challenge` is the server's `WWW-Authenticate`. Raises `ServerProblem` if a person must
        sign in first.
        """
        ...


AnswerServer = Callable[[str, JsonObject, str | int], Awaitable[JsonObject]]
"""Answers a request of a server: takes its name, the parameters and the request's id."""


class ServerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """A session's means to reach servers. `env` are variables their programs get besides their own.

    `cwd` is the session's working directory, which servers may ask for. `answers` are the methods
    that servers may call, besides those that need nobody.
    """

    cwd: str
    env: Mapping[str, str]
    start: StartProgram
    http: Callable[[], Http]
    read_events: Callable[[], EventReader]
    sign_in: Callable[[McpServer], SignIn] | None = None
    answers: Mapping[str, AnswerServer] = {}
    extensions: JsonObject = {}
    """Extensions of the protocol that servers are told of."""
