"""One client of an MCP server: both versions of the protocol, over any transport."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INVALID_PARAMS,
    META,
    METHOD_NOT_FOUND,
    SERVER_KEY,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    VERSIONS,
    RemoteError,
    read_error,
)
from trimtab.transports.mcp.open_call import OpenCall
from trimtab.transports.mcp.service import ClientLink, NewService, Service

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
SUBSCRIPTION = f"{META}subscriptionId"
CACHEABLE = frozenset(
    (
        *("server/discover", "tools/list", "prompts/list", "resources/list"),
        *("resources/templates/list", "resources/read"),
    )
)
REMOVED = frozenset(
    ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
)
"""Methods that the stateless version does not have."""
CHANGES = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
OWN_META = (VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY)
Send = Callable[[JsonObject], None]


class Conversation:
    """Answers the messages of one client. `send` carries messages that answer nothing."""

    def __init__(self, new_service: NewService, send: Send) -> None:
        self._new_service = new_service
        self._send = send
        self._service: Service | None = None
        self._asked: dict[str, asyncio.Future[JsonObject]] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}
        self._listeners: dict[Any, tuple[JsonObject, Send]] = {}
        self._count = 0
        self._open_calls: list[OpenCall] = []
        """Requests without a session that are not answered yet, the newest last."""

    async def receive(self, message: JsonObject, send: Send | None = None) -> JsonObject | None:
        """Handle a message; return its answer, or None if it has none.

        `send` is the way for what belongs to a request, such as progress.
        """
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._take_answer(message)
            return None
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if number is None:
            self._take_notice(method, params)
            return None
        task = asyncio.ensure_future(self._answer(method, params, number, send or self._send))
        self._running[number] = task
        try:
            return {"id": number, "result": await task}
        except RemoteError as error:
            described: JsonObject = {"code": error.code or INTERNAL_ERROR, "message": str(error)}
            if error.data is not None:
                described["data"] = error.data
            return {"id": number, "error": described}
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelling():
                return None
            task.cancel()
            raise
        finally:
            del self._running[number]

    async def aclose(self) -> None:
        for task in (tasks := list(self._running.values())):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for call in self._open_calls:
            await call.aclose()
        if self._service is not None:
            await self._service.aclose()

    async def _answer(self, method: str, params: JsonObject, number: Any, send: Send) -> JsonObject:
        meta = params.get("_meta")
        if isinstance(meta, dict) and VERSION_KEY in meta:
            return await self._answer_stateless(method, params, number, send)
        if method == "initialize":
            return await self._greet(params)
        if method == "ping":
            return {}
        if self._service is None:
            raise RemoteError("Send initialize first.", INVALID_REQUEST)
        return await self._service.answer(method, params)

    async def _greet(self, params: JsonObject) -> JsonObject:
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS else VERSIONS[0]
        service = await self._open(params.get("capabilities"))
        return {"protocolVersion": version, **await service.describe()}

    async def _open(self, capabilities: Any) -> Service:
        if self._service is None:
            given = capabilities if isinstance(capabilities, dict) else {}
            self._service = self._new_service(ClientLink(given, self._notify, self._request))
        return self._service

    async def _answer_stateless(
        self, method: str, params: JsonObject, number: Any, send: Send
    ) -> JsonObject:
        check_stateless(params)
        if method in REMOVED:
            raise RemoteError(f"Method not found: {method}", METHOD_NOT_FOUND)
        service = await self._open(params["_meta"].get(CAPABILITIES_KEY))
        if method == "subscriptions/listen":
            return await self._listen(params, number, send)
        described = await service.describe()
        if method == "server/discover":
            found = {name: value for name, value in described.items() if name != "serverInfo"}
            result: JsonObject = {"supportedVersions": [STATELESS], **found}
        else:
            kept = {name: value for name, value in params["_meta"].items() if name not in OWN_META}
            result = await self._answer_open(service, method, {**params, "_meta": kept})
        meta = {**(result.get("_meta") or {}), SERVER_KEY: described["serverInfo"]}
        result = {"resultType": "complete", **result, "_meta": meta}
        if method in CACHEABLE and result["resultType"] == "complete":
            result = {"ttlMs": 0, "cacheScope": "private", **result}
        return result

    async def _answer_open(self, service: Service, method: str, params: JsonObject) -> JsonObject:
        """Answer a request, or return what it asks the client; go on with one it has answered."""
        state = params.get("requestState")
        call = next((call for call in self._open_calls if call.state == state), None)
        if call is None:
            call = OpenCall(service.answer(method, params))
            self._open_calls.append(call)
        else:
            call.give(params.get("inputResponses"))
        is_open = False
        try:
            result = await call.result()
            is_open = result.get("requestState") == call.state
        finally:
            if not is_open:
                self._open_calls.remove(call)
        return result

    async def _listen(self, params: JsonObject, number: Any, send: Send) -> JsonObject:
        """Send the changes that a client wants to hear of, until it has heard enough."""
        wanted = params.get("notifications")
        honored: JsonObject = {
            name: value
            for name, value in (wanted if isinstance(wanted, dict) else {}).items()
            if (name in CHANGES.values() and value is True)
            or (name == "resourceSubscriptions" and isinstance(value, list))
        }
        stamp = {SUBSCRIPTION: number}
        acknowledged = {"_meta": stamp, "notifications": honored}
        send({"method": "notifications/subscriptions/acknowledged", "params": acknowledged})
        self._listeners[number] = (honored, send)
        try:
            for uri in honored.get("resourceSubscriptions", ()):
                with suppress(RemoteError):  # the server may have another way, or none
                    assert self._service is not None
                    await self._service.answer("resources/subscribe", {"uri": uri})
            await asyncio.get_running_loop().create_future()
        finally:
            del self._listeners[number]
        raise AssertionError("a subscription ends by cancellation")

    def _notify(self, method: str, params: JsonObject) -> None:
        if not self._listeners:
            self._send({"method": method, "params": params})
        for number, (honored, send) in list(self._listeners.items()):
            updated = method == "notifications/resources/updated"
            listened = params.get("uri") in honored.get("resourceSubscriptions", ())
            if honored.get(CHANGES.get(method, "")) or (updated and listened):
                meta = {**(params.get("_meta") or {}), SUBSCRIPTION: number}
                send({"method": method, "params": {**params, "_meta": meta}})

    async def _request(self, method: str, params: JsonObject) -> JsonObject:
        if self._open_calls:
            return await self._open_calls[-1].ask(method, params)
        self._count += 1
        number = f"s-{self._count}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._send({"id": number, "method": method, "params": params})
        try:
            return await answer
        finally:
            del self._asked[number]

    def _take_answer(self, message: JsonObject) -> None:
        answer = self._asked.get(str(message.get("id")))
        if answer is None or answer.done():
            return
        if message.get("error") is not None:
            answer.set_exception(read_error(message["error"]))
        else:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})

    def _take_notice(self, method: str, params: JsonObject) -> None:
        task = self._running.get(params.get("requestId"))
        if method == "notifications/cancelled" and task is not None:
            task.cancel()


def check_stateless(params: Mapping[str, Any]) -> None:
    """Raise `RemoteError` unless the metadata of a stateless request is complete."""
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if not isinstance(meta.get(VERSION_KEY), str):
        raise RemoteError(f"_meta has no {VERSION_KEY}", INVALID_PARAMS)
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise RemoteError(f"_meta has no {CAPABILITIES_KEY}", INVALID_PARAMS)
    if meta[VERSION_KEY] != STATELESS:
        data = {"supported": [STATELESS], "requested": meta[VERSION_KEY]}
        raise RemoteError("Unsupported protocol version", UNSUPPORTED_VERSION, data)


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
