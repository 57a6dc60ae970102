"""MCP servers for tests: our own small one as a program and over HTTP, and what was said to it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from mcp import ClientSession, StdioServerParameters, stdio_client

import mcpserver
from clikit import TRIMTAB, Cli
from trimtab.contracts.customization import McpServer
from trimtab.contracts.mcp import ServerAccess
from trimtab.contracts.tool import Tool, ToolContext, ToolResult
from trimtab.mcp.host import McpHost
from trimtab.mcp.messages import MAX_MESSAGE_BYTES
from trimtab.mcp.tool import ToolSupport
from trimtab.providers.http import HttpClient
from trimtab.providers.http_server import Exchange, HttpServer
from trimtab.providers.sse import SseParser
from trimtab.workspace.piped_program import PipedProgram

SCRIPT = str(Path(mcpserver.__file__))
PYTHON = (sys.executable, "-S", "-E")
PATIENT: dict[str, Any] = {"slowConnectionThresholdMs": 30_000}
"""The first request has the tools of a server, however busy the machine is."""


def entry(mode: str = "", log: Path | None = None, **fields: Any) -> dict[str, Any]:
    """A configured server that is our program."""
    command, *flags = PYTHON
    args = [*flags, SCRIPT, mode, str(log or "")]
    return {"type": "local", "command": command, "args": args, **PATIENT, **fields}


def configure(file: Path, **servers: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


def server(
    name: str = "small", mode: str = "", log: Path | None = None, **fields: Any
) -> McpServer:
    """The same as it is after configuration was read."""
    given = entry(mode, log)
    config = {"command": given["command"], "args": tuple(given["args"]), "extra": PATIENT, **fields}
    return McpServer(name=name, source="user", **{"type": "local", **config})


def heard(log: Path) -> list[dict[str, Any]]:
    """The messages a server got."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def methods(log: Path) -> list[str]:
    return [message.get("method", "answer") for message in heard(log)]


class Hosted:
    """A host of servers without a session, and what it told."""

    def __init__(self, folder: Path, *, offline: bool, **fields: Any) -> None:
        env = {"PATH": os.environ["PATH"], "COPILOT_AGENT_SESSION_ID": "s"}
        self.http = HttpClient(env, offline=offline)
        reach = ServerAccess(
            cwd=str(folder),
            env=env,
            start=PipedProgram,
            http=lambda: self.http,
            read_events=lambda: SseParser(MAX_MESSAGE_BYTES),
            **fields,
        )
        self.told: list[Any] = []
        self.said: list[str] = []
        self.offers = 0
        """The number of changes of the tools."""
        self._changed = asyncio.Event()
        self.host = McpHost(reach, ToolSupport(limit=keep), self._tell, self._offer)

    def _offer(self) -> None:
        self.offers += 1
        self._changed.set()

    def _tell(self, data: Any) -> Any:
        self.told.append(data)
        self._changed.set()

    def _progress(self, text: str) -> None:
        self.said.append(text)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so, looking whenever anything was told."""
        async with asyncio.timeout(60):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def states(self, name: str = "small") -> list[str]:
        """The states a server went through."""
        said = [
            event for event in self.told if event.wire_name == "session.mcp_server_status_changed"
        ]
        return [event.status for event in said if event.server_name == name]

    def error(self, name: str = "small") -> str:
        return self.host.servers[name].error

    async def call(self, name: str, **args: Any) -> ToolResult:
        tool = next(tool for tool in self.host.tools if tool.spec.name == name)
        return await self.run(tool, **args)

    async def run(self, tool: Tool, **args: Any) -> ToolResult:
        return await tool.run(args, cast(ToolContext, Context(self._progress)))


class Context:
    """As much of a tool's context as a tool of a server uses."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.call_id = "call-1"
        self.progress = progress


async def keep(text: str, ctx: Any) -> str:
    return text


@asynccontextmanager
async def hosting(
    folder: Path, *servers: McpServer, offline: bool = False, **fields: Any
) -> AsyncIterator[Hosted]:
    """Servers that were given the time to connect, or to fail; `fields` of their access."""
    hosted = Hosted(folder, offline=offline, **fields)
    try:
        await hosted.host.use({server.name: server for server in servers})
        for name, server in hosted.host.servers.items():
            # A busy machine needs longer than a prompt would wait.
            if "slowConnectionThresholdMs" not in server.config.extra:
                assert await server.settled(60), f"{name} neither connected nor failed"
        await hosted.host.settled()
        yield hosted
    finally:
        await hosted.host.aclose()
        await hosted.http.aclose()


class HttpPeer:
    """Our server behind an address: streamable HTTP, or the older kind with one stream."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.url = ""
        self.streams = False
        """True if answers are events instead of JSON."""
        self.refuse: Callable[[Exchange], Any] | None = None
        """Answers instead, if it gives anything true."""
        self.unasked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.mode = ""

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        body = json.loads(request.body) if request.body else None
        self.requests.append((request.method, dict(request.headers), body))
        if self.refuse is not None and await self.refuse(exchange):
            return
        if request.method == "DELETE":
            await exchange.answer(200, b"")
        elif request.method == "GET":
            await self._stream(exchange)
        elif request.path == "/messages":
            await exchange.answer(202, b"")
            for reply in self._reply(body):
                self.unasked.put_nowait(reply)
        else:
            await self._post(exchange, body)

    def _reply(self, body: Any) -> list[dict[str, Any]]:
        replies: list[dict[str, Any]] = []
        mcpserver.Server(self.mode, "", replies.append).take(body)
        return replies

    async def _post(self, exchange: Exchange, body: Any) -> None:
        replies = self._reply(body)
        headers = [("mcp-session-id", "s1")] if body.get("method") == "initialize" else []
        if not replies:
            await exchange.answer(202, b"", headers=headers)
        elif self.streams:
            await exchange.begin(200, [("content-type", "text/event-stream"), *headers])
            for reply in replies:
                await exchange.send([f"event: message\ndata: {json.dumps(reply)}\n\n".encode()])
            await exchange.end()
        else:
            await exchange.answer(200, json.dumps(replies[-1]).encode(), headers=headers)

    async def _stream(self, exchange: Exchange) -> None:
        if exchange.request.path != "/sse" and not self.streams:
            await exchange.answer(405, b"")
            return
        await exchange.begin(200, [("content-type", "text/event-stream")])
        first = b"event: endpoint\ndata: /messages?id=1\n\n"
        await exchange.send([first if exchange.request.path == "/sse" else b": hello\n\n"])
        while True:
            message = await self.unasked.get()
            await exchange.send([f"data: {json.dumps(message)}\n\n".encode()])


@asynccontextmanager
async def serving_http() -> AsyncIterator[HttpPeer]:
    peer = HttpPeer()
    listener = HttpServer(peer.handle)
    port = await listener.start("127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{port}/mcp"
    try:
        yield peer
    finally:
        await listener.stop()


@asynccontextmanager
async def connected(cli: Cli, *args: str) -> AsyncIterator[ClientSession]:
    """The official client, connected to the program on standard input and output."""
    given = StdioServerParameters(
        command=TRIMTAB, args=["mcp", *args], env=cli.env, cwd=str(cli.cwd)
    )
    async with asyncio.timeout(60):
        async with stdio_client(given) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


@asynccontextmanager
async def serving_mcp(cli: Cli, action: str, *args: str, token: str = "") -> AsyncIterator[str]:
    """The installed program as an MCP server over HTTP; gives its address."""
    flags = () if token else ("--no-token",)
    env = {"TRIMTAB_MCP_TOKEN": token} if token else {}
    process = await cli.start("mcp", action, *args, "--http", *flags, env=env)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(50):
            line = (await process.stderr.readline()).decode()
        assert line.startswith("Listening on "), line
        yield line.removeprefix("Listening on ").strip()
    finally:
        process.terminate()
        async with asyncio.timeout(50):
            assert await process.wait() == 0


FOREIGN = '''
import sys
from mcp.server import MCPServer

server = MCPServer("foreign", instructions="Use add for sums.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def boom() -> str:
    raise ValueError("it went wrong")


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
'''
"""A server written with the official package."""
