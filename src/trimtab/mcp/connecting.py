"""Makes connections to MCP servers; loaded only once a server is contacted."""

from collections.abc import Callable

from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.client import McpClient, Notice, ServerInfo
from trimtab.mcp.http import HttpChannel, SseChannel
from trimtab.mcp.messages import VERSIONS, RemoteError, ServerProblem
from trimtab.mcp.server_notices import find_log_level
from trimtab.mcp.server_requests import ServerRequests
from trimtab.mcp.stdio import StdioChannel
from trimtab.mcp.transport import Channel


def build_channel(server: McpServer, access: ServerAccess) -> Channel:
    """Return the way to a server. Raises `ServerProblem` for wrong settings of its sign-in."""
    if server.type == "local":
        return StdioChannel(server, access)
    kind = HttpChannel if server.type == "http" else SseChannel
    return kind(server, access)


def build_client(server: McpServer, access: ServerAccess, on_notice: Notice) -> McpClient:
    """Return a client of a session. Raises `ServerProblem` for wrong settings of its sign-in."""
    requests = ServerRequests(server.name, access.cwd, access.answers, access.extensions)
    client = McpClient(build_channel(server, access), requests, on_notice)
    client.log_level = find_log_level(server)
    return client


async def connect_client(
    build: Callable[[], McpClient], config: McpServer, seconds: float, known: str = ""
) -> tuple[McpClient, ServerInfo]:
    """Connect in the version of before, else in any; programs that exit then, in an older one.

    Some programs exit if the first message is not the older greeting. Raises `ServerProblem`,
    `RemoteError` or `TimeoutError`.
    """
    for version in dict.fromkeys((known, "", VERSIONS[0])):
        client = build()
        try:
            return client, await client.start(seconds, version)
        except BaseException as error:
            await client.aclose()
            older = isinstance(error, ServerProblem) and error.gone
            if isinstance(error, ServerProblem | RemoteError) and (
                version or (older and config.type == "local")
            ):
                failure = error
                continue
            raise
    raise failure
