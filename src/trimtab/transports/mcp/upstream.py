"""A connection of the gateway to one configured server, on behalf of one client."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.client import McpClient
from trimtab.mcp.connecting import build_channel, connect_client
from trimtab.mcp.listed_tools import HeaderParameters
from trimtab.mcp.listing import is_selected
from trimtab.mcp.messages import (
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    MAX_REQUEST_SECONDS,
    RemoteError,
    ServerProblem,
)
from trimtab.mcp.parameter_headers import build_headers, find_header_problem, find_headers
from trimtab.mcp.server import find_subscriptions, find_timeout
from trimtab.mcp.server_notices import LEVELS
from trimtab.transports.mcp.service import ClientLink, drop_input

LOG_LEVEL, SUBSCRIBE = "logging/setLevel", "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
NOT_PASSED = ("notifications/subscriptions/acknowledged", "notifications/cancelled")
MARK = {"X-Trimtab-Gateway": "1"}
"""The header of what a gateway sends, by which it notices that it serves itself."""
LISTEN_DELAYS = (1.0, 5.0, 30.0, 60.0)
MAX_PAGES = 100


class _ClientRequests:
    """Passes what a server asks on to the client of the gateway."""

    def __init__(self, link: ClientLink) -> None:
        self._link = link

    @property
    def capabilities(self) -> JsonObject:
        return self._link.capabilities

    def asks(self, method: str) -> bool:
        return method != "ping"

    async def answer(self, method: str, params: JsonObject, number: str | int) -> JsonObject:
        return {} if method == "ping" else await self._link.request(method, params)


class Upstream:
    """One server of the gateway. After its connection is lost, the next request connects again."""

    def __init__(self, server: McpServer, access: ServerAccess, link: ClientLink) -> None:
        self.name = server.name
        self.description: JsonObject = {}
        headers = server.headers if server.type == "local" else {**server.headers, **MARK}
        self._server = msgspec.structs.replace(server, headers=headers)
        self._access = access
        self._link = link
        self._client: McpClient | None = None
        self._connecting = asyncio.Lock()
        self._is_lost = False
        self._settings: dict[tuple[str, str], JsonObject] = {}
        """The log level and the subscriptions of the client, which a new connection needs."""
        self._headers: dict[str, HeaderParameters] = {}
        self._listening: asyncio.Task[None] | None = None

    async def connect(self) -> McpClient:
        """Return the connection, made anew if there is none. Raises `RemoteError`."""
        async with self._connecting:
            client = self._client
            if client is not None and client.lost is None and not self._is_lost:
                return client
            await self.aclose()
            try:
                client, info = await connect_client(
                    self._build, self._server, find_timeout(self._server)
                )
            except (ServerProblem, TimeoutError) as problem:
                reason = str(problem) or "it did not answer in time"
                raise RemoteError(f"The MCP server {self.name} cannot be used: {reason}") from None
            self._client, self._is_lost = client, False
            self.description = {
                "capabilities": dict(info.capabilities),
                "serverInfo": dict(info.implementation) or {"name": self.name, "version": "0"},
            }
            if info.instructions:
                self.description["instructions"] = info.instructions
            await self._restore(client)
            return client

    def _build(self) -> McpClient:
        channel = build_channel(self._server, self._access)
        return McpClient(channel, _ClientRequests(self._link), self._on_notice)

    def _on_notice(self, method: str, params: JsonObject) -> None:
        if method not in NOT_PASSED:
            self._link.notify(method, params)

    async def _restore(self, client: McpClient) -> None:
        """Apply what the client set on an earlier connection."""
        if client.is_stateless:
            self._listen_again(client)
            return
        for (method, _), params in self._settings.items():
            with suppress(RemoteError, ServerProblem, TimeoutError):
                await client.request(method, params, find_timeout(self._server))

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Pass a request on. Raises `RemoteError`."""
        client = await self.connect()
        if method == "tools/call" and not is_selected(str(params.get("name")), self._server):
            raise RemoteError(f"Unknown tool: {str(params.get('name'))[:100]}", INVALID_PARAMS)
        if client.is_stateless and method in (LOG_LEVEL, SUBSCRIBE, UNSUBSCRIBE):
            self._keep(method, params)
            self._listen_again(client)
            return {}
        answer = await self._send(client, method, params)
        self._keep(method, params)
        return self._select(answer) if method == "tools/list" else answer

    async def _send(self, client: McpClient, method: str, params: JsonObject) -> JsonObject:
        passes = client.is_stateless and self._link.stateless
        params = params if passes else drop_input(params)
        try:
            await self._set_level(client, params)
            headers = await self._find_headers(client, method, params)
            send = client.request_once if passes else client.request
            return await send(method, params, MAX_REQUEST_SECONDS, headers=headers)
        except ServerProblem as problem:
            self._is_lost = self._is_lost or (problem.gone and client is self._client)
            raise RemoteError(f"The MCP server {self.name} failed: {problem}") from None
        except TimeoutError:
            raise RemoteError(f"The MCP server {self.name} did not answer in time") from None

    async def _set_level(self, client: McpClient, params: JsonObject) -> None:
        """Tell a server with sessions which log lines a request without a session wants."""
        meta = params.get("_meta")
        level = meta.get(LOG_LEVEL_KEY) if isinstance(meta, dict) else None
        wanted = {"level": level}
        known = self._settings.get((LOG_LEVEL, ""))
        if client.is_stateless or level not in LEVELS or known == wanted:
            return
        if "logging" in self.description["capabilities"]:
            self._settings[LOG_LEVEL, ""] = wanted
            with suppress(RemoteError):
                await client.request(LOG_LEVEL, wanted, find_timeout(self._server))

    async def _find_headers(
        self, client: McpClient, method: str, params: JsonObject
    ) -> dict[str, str]:
        """Return the parameters of a call that its tool wants repeated in headers of HTTP."""
        if method != "tools/call" or not client.is_stateless or self._server.type == "local":
            return {}
        name, cursor = str(params.get("name")), None
        for _ in range(MAX_PAGES if name not in self._headers else 0):
            page = await client.request(
                "tools/list", {} if cursor is None else {"cursor": cursor}, MAX_REQUEST_SECONDS
            )
            self._select(page)
            cursor = page.get("nextCursor")
            if name in self._headers or not isinstance(cursor, str):
                break
        given = params.get("arguments")
        return build_headers(self._headers.get(name, ()), given if isinstance(given, dict) else {})

    def _select(self, page: JsonObject) -> JsonObject:
        """Return a page of tools without those that the server's entry leaves out."""
        listed = page.get("tools")
        if not isinstance(listed, list):
            return page
        tools = [
            tool
            for tool in listed
            if not isinstance(tool, dict) or is_selected(str(tool.get("name")), self._server)
        ]
        for tool in tools:
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if isinstance(schema, dict) and not find_header_problem(schema):
                self._headers[str(tool.get("name"))] = find_headers(schema)
        return {**page, "tools": tools}

    def _keep(self, method: str, params: JsonObject) -> None:
        """Remember a setting for the next connection."""
        uri = str(params.get("uri", ""))
        if method in (LOG_LEVEL, SUBSCRIBE):
            self._settings[method, uri] = params
        elif method == UNSUBSCRIBE:
            self._settings.pop((SUBSCRIBE, uri), None)

    def _listen_again(self, client: McpClient) -> None:
        """Translate the settings of a client with a session for a server without sessions."""
        if self._link.stateless:
            return
        level = self._settings.get((LOG_LEVEL, ""), {}).get("level")
        client.log_level = level if level in LEVELS else ""
        wanted: JsonObject = find_subscriptions(self.description["capabilities"])
        uris = [uri for method, uri in self._settings if method == SUBSCRIBE]
        if uris:
            wanted["resourceSubscriptions"] = uris
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.ensure_future(self._listen(client, wanted)) if wanted else None

    async def listen(self, wanted: JsonObject) -> None:
        """Have changes reported, until this is cancelled. An older server reports them anyway."""
        client = await self.connect()
        if client.is_stateless:
            await self._listen(client, wanted)
            return
        for uri in wanted.get("resourceSubscriptions", ()):
            with suppress(RemoteError):  # the server may not report changes of resources
                await self.request(SUBSCRIBE, {"uri": uri})

    async def _listen(self, client: McpClient, wanted: JsonObject) -> None:
        for delay in LISTEN_DELAYS:
            with suppress(ServerProblem, RemoteError, TimeoutError):
                params = {"notifications": wanted}
                await client.request("subscriptions/listen", params, MAX_REQUEST_SECONDS)
            if client is not self._client or client.lost is not None:
                return
            await asyncio.sleep(delay)

    async def take_notice(self, method: str, params: JsonObject) -> None:
        """Pass a notification of the client on; servers without sessions take none."""
        client: Any = self._client
        if client is not None and not client.is_stateless:
            with suppress(ServerProblem, RemoteError):
                await client.notify(method, params)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
            self._listening = None
        if client is not None:
            await client.aclose()
