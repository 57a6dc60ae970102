"""A tool of an MCP server."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property

import msgspec

from trimtab.contracts.customization import McpServer
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import Origin
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.text import neutralise
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.mcp.messages import Progress, RemoteError, ServerProblem

PROGRESS_INTERVAL = 0.2
"""The seconds between two published reports of progress; a server may send thousands."""
Limit = Callable[[str, ToolContext], Awaitable[str]]
"""Shortens a text for a model."""
CallTool = Callable[[JsonObject, Progress], Awaitable[JsonObject]]
"""Sends the parameters of `tools/call` to the server."""
Prepare = Callable[[Origin, JsonObject, str], Awaitable[JsonObject]]
"""Takes a tool's origin, the parameters of a call and its id; returns the parameters to send."""


class ToolSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that the tools of a session's servers share."""

    limit: Limit
    prepare: Prepare | None = None


class McpTool:
    """A tool of a server. Its effects are unknown, so a call counts as a change."""

    def __init__(
        self,
        spec: ToolSpec,
        origin: Origin,
        server: McpServer,
        call: CallTool,
        support: ToolSupport,
    ) -> None:
        self.spec = spec
        self.origin = origin
        self._server = server
        self._call = call
        self._support = support
        self.deferred = False
        """True if the model is not shown it until it searches for it."""

    @cached_property
    def _digest(self) -> str:
        """Names the description of the tool, so that an approval holds for no other."""
        import hashlib

        spec, origin = self.spec, self.origin
        described = [spec.description, spec.parameters, origin.title, origin.read_only]
        encoded = msgspec.json.encode(described, order="sorted")
        return hashlib.sha256(encoded).hexdigest()[:16]

    @property
    def defers(self) -> bool:
        """True if its server's entry lets it be hidden behind a search."""
        return self._server.extra.get("deferTools") != "never"

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        origin = self.origin
        return [
            Access(
                kind="mcp",
                target=self.spec.name,
                intention=f"Call {origin.tool} of the MCP server {origin.server}",
                detail={
                    "serverName": origin.server,
                    "toolName": origin.tool,
                    "toolTitle": origin.title or origin.tool,
                    "args": dict(args),
                    "readOnly": origin.read_only,
                    "toolDigest": self._digest,
                },
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        origin = self.origin
        params: JsonObject = {"name": origin.tool, "arguments": dict(args)}
        if self._support.prepare is not None:
            params = await self._support.prepare(origin, params, ctx.call_id)
        try:
            answer = await self._call(params, _throttle(ctx.progress))
        except RemoteError as error:
            reason = neutralise(str(error))
            return _fail(f"The MCP server {origin.server} rejected the call: {reason}")
        except ServerProblem as problem:
            return _fail(f"The MCP server {origin.server} cannot be used: {problem}.")
        except TimeoutError:
            return _fail(
                f"The MCP server {origin.server} did not answer in time and made no progress; the "
                "call may have had effects."
            )
        from trimtab.mcp.result import choose_filter, read_result

        filters = choose_filter(self._server.filter_mapping, origin.tool)
        result = read_result(answer, filters)
        text = await self._support.limit(result.text, ctx)
        return result if text is result.text else msgspec.structs.replace(result, text=text)


def _fail(text: str) -> ToolResult:
    return ToolResult(text=text, kind="failure")


def _throttle(publish: Callable[[str], None]) -> Progress:
    last = 0.0

    def progress(message: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL:
            last = now
            publish(neutralise(message[:1000]) + "\n")

    return progress
