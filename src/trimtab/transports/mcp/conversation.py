"""One client of an MCP server: both versions of the protocol, over any transport."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.messages import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
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
from trimtab.mcp.server_notices import LEVELS
from trimtab.transports.mcp.open_call import OpenCall
from trimtab.transports.mcp.service import ClientLink, NewService, Notify, Service

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
MAX_REASON = 1000
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
UPDATED = "notifications/resources/updated"
LOGGED = "notifications/message"
Send = Callable[[JsonObject], None]


class Conversation:
    """Answers the messages of one client.

    `send` carries messages that answer nothing. `announce` is called with the changes that clients
    without sessions subscribe to; it calls `tell` of each conversation that may have subscribers.
    """

    def __init__(self, new_service: NewService, send: Send, announce: Notify | None = None) -> None:
        self.send = send
        self._new_service = new_service
        self._announce = announce or self.tell
        self._service: Service | None = None
        self._link: ClientLink | None = None
        self._asked: dict[str, asyncio.Future[JsonObject]] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._levels: dict[Any, str] = {}
        """The lowest level of log lines that a running request without a session wants."""
        self._listeners: dict[Any, tuple[JsonObject, Send]] = {}
        self._count = 0
        self._open_calls: list[OpenCall] = []
        """Requests without a session that are not answered yet, the newest last."""

    @property
    def waits_for_client(self) -> bool:
        """True if a request has asked its client something and goes on when that is answered."""
        return bool(self._open_calls)

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
        if "id" not in message:
            self._take_notice(method, params)
            return None
        if not isinstance(number, str | int | float) or isinstance(number, bool):
            return _describe_error(None, INVALID_REQUEST, "The id is not a text or a number.")
        if number in self._running:
            return _describe_error(number, INVALID_REQUEST, "A request with this id is open.")
        return await self._run(method, params, number, send or self.send)

    async def _run(
        self, method: str, params: JsonObject, number: Any, send: Send
    ) -> JsonObject | None:
        """Return the answer to a request, or None if the client has cancelled it."""
        task = asyncio.ensure_future(self._answer(method, params, number, send))
        self._running[number] = task
        try:
            return {"id": number, "result": await task}
        except RemoteError as error:
            return _describe_error(number, error.code or INTERNAL_ERROR, str(error), error.data)
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelling():
                return None
            task.cancel()
            raise
        except Exception as error:  # the client waits for an answer, whatever went wrong
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
            return _describe_error(number, INTERNAL_ERROR, reason)
        finally:
            del self._running[number]

    async def aclose(self) -> None:
        for task in (tasks := list(self._running.values())):
            task.cancel()
        for notice in self._notices:
            notice.cancel()
        if tasks or self._notices:
            await asyncio.wait({*tasks, *self._notices})
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
        service = self._open(params.get("capabilities"), stateless=False)
        return {"protocolVersion": version, **await service.describe()}

    def _open(self, capabilities: Any, *, stateless: bool) -> Service:
        given = capabilities if isinstance(capabilities, dict) else {}
        if self._service is None or self._link is None:
            self._link = ClientLink(given, self._notify, self._request, stateless=stateless)
            self._service = self._new_service(self._link)
        elif stateless:
            self._link.capabilities = given
        return self._service

    async def _answer_stateless(
        self, method: str, params: JsonObject, number: Any, send: Send
    ) -> JsonObject:
        check_stateless(params)
        if method in REMOVED:
            raise RemoteError(f"Method not found: {method}", METHOD_NOT_FOUND)
        service = self._open(params["_meta"].get(CAPABILITIES_KEY), stateless=True)
        if method == "subscriptions/listen":
            return await self._listen(service, params, number, send)
        described = await service.describe()
        if method == "server/discover":
            found = {name: value for name, value in described.items() if name != "serverInfo"}
            result: JsonObject = {"supportedVersions": [STATELESS], **found}
        else:
            kept = {name: value for name, value in params["_meta"].items() if name not in OWN_META}
            self._levels[number] = str(kept.get(LOG_LEVEL_KEY, ""))
            try:
                result = await self._answer_open(service, method, {**params, "_meta": kept})
            finally:
                del self._levels[number]
        meta = {**_as_object(result.get("_meta")), SERVER_KEY: described["serverInfo"]}
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

    async def _listen(
        self, service: Service, params: JsonObject, number: Any, send: Send
    ) -> JsonObject:
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
            await service.listen(honored)
            await asyncio.get_running_loop().create_future()
        finally:
            del self._listeners[number]
        raise AssertionError("a subscription ends by cancellation")

    def _notify(self, method: str, params: JsonObject) -> None:
        """Send a notification of the service to who wants it."""
        if self._link is None or not self._link.stateless:
            self.send({"method": method, "params": params})
        elif method in CHANGES or method == UPDATED:
            self._announce(method, params)
        elif method != LOGGED or self._wants_line(params):
            self.send({"method": method, "params": params})

    def _wants_line(self, params: JsonObject) -> bool:
        level = params.get("level")
        rank = LEVELS.index(level) if level in LEVELS else len(LEVELS)
        return any(
            wanted in LEVELS and LEVELS.index(wanted) <= rank for wanted in self._levels.values()
        )

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a change to the subscribers of this conversation."""
        for number, (honored, send) in list(self._listeners.items()):
            listened = params.get("uri") in honored.get("resourceSubscriptions", ())
            if honored.get(CHANGES.get(method, "")) or (method == UPDATED and listened):
                meta = {**_as_object(params.get("_meta")), SUBSCRIPTION: number}
                send({"method": method, "params": {**params, "_meta": meta}})

    async def _request(self, method: str, params: JsonObject) -> JsonObject:
        if self._open_calls:
            return await self._open_calls[-1].ask(method, params)
        if self._link is not None and self._link.stateless:
            raise RemoteError("No request of the client is open, so it cannot be asked.")
        self._count += 1
        number = f"s-{self._count}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.send({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            withdrawn = {"requestId": number, "reason": "The server does not wait for it."}
            self.send({"method": "notifications/cancelled", "params": withdrawn})
            raise
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
        if method == "notifications/cancelled":
            task = self._running.get(params.get("requestId"))
            if task is not None:
                task.cancel()
        elif self._service is not None and method != "notifications/initialized":
            notice = asyncio.ensure_future(self._service.take_notice(method, params))
            self._notices.add(notice)
            notice.add_done_callback(self._notices.discard)


def _describe_error(number: Any, code: int, text: str, data: Any = None) -> JsonObject:
    error: JsonObject = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"id": number, "error": error}


def _as_object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


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
