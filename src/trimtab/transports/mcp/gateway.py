"""Serves the MCP servers of a configuration: one unchanged, several under one roof."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import ServerAccess
from trimtab.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RemoteError
from trimtab.transports.mcp.service import ClientLink
from trimtab.transports.mcp.upstream import Upstream
from trimtab.version import __version__

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
NAMED = {"tools/call": "name", "prompts/get": "name"}
BROADCAST = ("logging/setLevel",)
MAX_PAGES = 100


class Gateway:
    """The service of a gateway: everything passes both ways."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        access: ServerAccess,
        link: ClientLink,
        warn: Callable[[str], None],
    ) -> None:
        """`warn` is called with a sentence about each of several servers that is left out."""
        self._warn = warn
        self._is_single = len(servers) == 1
        """True if names pass unchanged; they must not depend on which servers are reached."""
        self._upstreams = {name: Upstream(server, access, link) for name, server in servers.items()}
        self._connected: asyncio.Task[None] | None = None
        self._owners: dict[tuple[str, str], tuple[Upstream, str]] = {}
        """Method and name or address → the server it belongs to, and its name there."""

    async def describe(self) -> JsonObject:
        await self._connect()
        if self._is_single:
            return next(iter(self._upstreams.values())).description
        capabilities: dict[str, Any] = {}
        for upstream in self._upstreams.values():
            capabilities |= upstream.description.get("capabilities", {})
        return {
            "capabilities": capabilities,
            "serverInfo": {"name": "trimtab-gateway", "version": __version__},
        }

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        await self._connect()
        if self._is_single:
            return await next(iter(self._upstreams.values())).request(method, params)
        if method in LISTS:
            return {LISTS[method]: await self._list(method, params)}
        if method in BROADCAST:
            for upstream in self._upstreams.values():
                await upstream.request(method, params)
            return {}
        return await self._route(method, params)

    async def take_notice(self, method: str, params: JsonObject) -> None:
        for upstream in self._upstreams.values():
            await upstream.take_notice(method, params)

    async def listen(self, wanted: JsonObject) -> None:
        await self._connect()
        listening = [
            asyncio.ensure_future(upstream.listen(wanted)) for upstream in self._upstreams.values()
        ]
        try:
            await asyncio.wait(listening)
        finally:
            for task in listening:
                task.cancel()
            await asyncio.wait(listening)

    async def aclose(self) -> None:
        if self._connected is not None:
            self._connected.cancel()
            await asyncio.wait((self._connected,))
        for upstream in self._upstreams.values():
            await upstream.aclose()

    async def _connect(self) -> None:
        """Connect all servers; of several, those that fail are left out."""
        if self._connected is None or (self._connected.done() and not self._is_usable()):
            self._connected = asyncio.ensure_future(self._connect_all())
        await asyncio.shield(self._connected)

    def _is_usable(self) -> bool:
        task = self._connected
        return task is not None and not task.cancelled() and task.exception() is None

    async def _connect_all(self) -> None:
        upstreams = list(self._upstreams.values())
        outcomes = await asyncio.gather(
            *(upstream.connect() for upstream in upstreams), return_exceptions=True
        )
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if len(failures) == len(upstreams):
            raise failures[0]
        for upstream, outcome in zip(upstreams, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                self._warn(f"{outcome}; it is left out.")
                del self._upstreams[upstream.name]
                await upstream.aclose()

    async def _list(self, method: str, params: JsonObject) -> list[JsonObject]:
        """Return the lists of all servers, with names that tell them apart."""
        found: list[JsonObject] = []
        meta = {"_meta": params["_meta"]} if "_meta" in params else {}
        for upstream in self._upstreams.values():
            entries = await self._pages(upstream, method, meta)
            found += [self._own(method, upstream, entry) for entry in entries]
        return found

    async def _pages(self, upstream: Upstream, method: str, params: JsonObject) -> list[JsonObject]:
        entries: list[JsonObject] = []
        cursor: Any = None
        for _ in range(MAX_PAGES):
            more = {"cursor": cursor} if cursor is not None else {}
            try:
                page = await upstream.request(method, {**params, **more})
            except RemoteError as error:
                if error.code == METHOD_NOT_FOUND:
                    break
                raise
            listed = page.get(LISTS[method])
            entries += [entry for entry in listed or () if isinstance(entry, dict)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                break
        return entries

    def _own(self, method: str, upstream: Upstream, entry: JsonObject) -> JsonObject:
        if method in ("tools/list", "prompts/list"):
            theirs = str(entry.get("name"))
            ours = f"{upstream.name}-{theirs}"
            target = "tools/call" if method == "tools/list" else "prompts/get"
            self._owners[target, ours] = (upstream, theirs)
            return {**entry, "name": ours}
        uri = str(entry.get("uri") or entry.get("uriTemplate"))
        self._owners.setdefault(("resources/read", uri), (upstream, uri))
        return entry

    async def _route(self, method: str, params: JsonObject) -> JsonObject:
        if method in NAMED:
            name = str(params.get("name"))
            listing = "tools/list" if method == "tools/call" else "prompts/list"
            if (method, name) not in self._owners:
                await self._list(listing, params)
            owner = self._owners.get((method, name))
            if owner is None:
                raise RemoteError(f"Unknown name: {name[:100]}", INVALID_PARAMS)
            return await owner[0].request(method, {**params, "name": owner[1]})
        reference = params.get("ref")
        if isinstance(reference, dict) and isinstance(reference.get("name"), str):
            if ("prompts/get", reference["name"]) not in self._owners:
                await self._list("prompts/list", params)
            owner = self._owners.get(("prompts/get", reference["name"]))
            if owner is not None:
                named = {**params, "ref": {**reference, "name": owner[1]}}
                return await owner[0].request(method, named)
        return await self._try_all(method, params)

    async def _try_all(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the servers one after another; the first that knows the address answers."""
        failure = RemoteError(f"Method not found: {method[:100]}", METHOD_NOT_FOUND)
        known = self._owners.get(("resources/read", str(params.get("uri"))))
        others = [each for each in self._upstreams.values() if known is None or each != known[0]]
        for upstream in [*([known[0]] if known else []), *others]:
            try:
                return await upstream.request(method, params)
            except RemoteError as error:
                failure = error
        raise failure
