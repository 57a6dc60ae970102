"""The connection to the client: lines in and out, requests and their answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.acp.protocol import (
    CANCELLED,
    INVALID_REQUEST,
    UNREADABLE,
    AcpError,
    ClientLeft,
    Incoming,
    RequestId,
    Then,
    decode_incoming,
    encode,
    encode_error,
    find_id,
)

Handle = Callable[[str, msgspec.Raw], Awaitable[Any]]
"""Handles a request: method and parameters to result. Raises `AcpError`."""
Notice = Callable[[str, msgspec.Raw], None]
"""Handles a notification. Raises nothing."""


class Connection(asyncio.Protocol):
    """Reads one message a line and answers it. Requests run concurrently.

    Requests and notifications begin in the order of their lines, so that a notification finds
    what the request before it has started.
    """

    def __init__(
        self, handle: Handle, on_notification: Notice, on_closed: Callable[[], None]
    ) -> None:
        self._handle = handle
        self._on_notification = on_notification
        self._on_closed = on_closed
        self._buffer = bytearray()
        self._searched = 0
        self._out: asyncio.WriteTransport | None = None
        self._unsent: list[bytes] = []
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._next_id = 0
        self.closed = False

    def write_to(self, out: asyncio.WriteTransport) -> None:
        self._out = out

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(memoryview(self._buffer)[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if line.strip() and not self.closed:
                self._on_line(line)
        self._searched = len(self._buffer)

    def eof_received(self) -> None:
        """Handle a last line that has no line feed."""
        line, self._buffer = bytes(self._buffer), bytearray()
        if line.strip() and not self.closed:
            self._on_line(line)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            self.closed = True
            self._abandon_questions()
            self._on_closed()

    async def finish(self) -> None:
        """Cancel the requests that still run, and write what is buffered."""
        self.closed = True
        self._abandon_questions()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._flush()
        if self._out is not None:
            self._out.close()

    def notify(self, method: str, params: Any) -> None:
        self._write(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: JsonObject) -> Any:
        """Send the client a request; return its result. Raises `ClientLeft` or `AcpError`.

        If the caller is cancelled, the client is told that nobody waits for the answer.
        """
        if self.closed:
            raise ClientLeft("The client has disconnected.")
        self._next_id += 1
        number = self._next_id
        waiting: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        self._write(encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        try:
            return msgspec.json.decode(await waiting)
        except asyncio.CancelledError:
            self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            self._asked.pop(number, None)

    def cancel_request(self, request_id: RequestId) -> None:
        """Cancel a request of the client, if it still runs."""
        task = self._tasks.get(request_id)
        if task is not None:
            task.cancel()

    def _abandon_questions(self) -> None:
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(ClientLeft("The client has disconnected."))

    def _on_line(self, line: bytes) -> None:
        try:
            message = decode_incoming(line)
        except AcpError as error:
            self._write(encode_error(find_id(line), error))
            return
        if isinstance(message.method, msgspec.UnsetType):
            self._on_answer(message)
        elif isinstance(message.id, msgspec.UnsetType):
            loop = asyncio.get_running_loop()
            loop.call_soon(self._on_notification, message.method, message.params)
        else:
            self._start(message.id, message.method, message.params)

    def _start(self, request_id: RequestId, method: str, params: msgspec.Raw) -> None:
        if request_id in self._tasks:
            error = AcpError(INVALID_REQUEST, f"Request id {request_id!r} is in use.")
            self._write(encode_error(request_id, error))
            return
        work = self._respond(request_id, method, params)
        self._tasks[request_id] = asyncio.get_running_loop().create_task(work)

    async def _respond(self, request_id: RequestId, method: str, params: msgspec.Raw) -> None:
        try:
            result = await self._handle(method, params)
        except asyncio.CancelledError:
            error = AcpError(CANCELLED, f"{method} was cancelled.")
            self._write(encode_error(request_id, error))
        except AcpError as error:
            self._write(encode_error(request_id, error))
        else:
            after = result.after if isinstance(result, Then) else None
            result = result.result if isinstance(result, Then) else result
            self._write(encode({"jsonrpc": "2.0", "id": request_id, "result": result}))
            if after is not None:  # once the answer is written
                asyncio.get_running_loop().call_soon(after)
        finally:
            self._tasks.pop(request_id, None)

    def _on_answer(self, message: Incoming) -> None:
        waiting = self._asked.get(message.id) if isinstance(message.id, int) else None
        if waiting is None or waiting.done():
            return
        if message.error is not None:
            error = message.error if isinstance(message.error, dict) else {}
            code, text = error.get("code"), error.get("message")
            code = code if isinstance(code, int) else 0
            waiting.set_exception(AcpError(code, str(text or "The client failed.")))
            return
        try:
            msgspec.json.decode(message.result)
        except UNREADABLE:
            waiting.set_exception(AcpError(0, "The client's answer is not JSON."))
        else:
            waiting.set_result(message.result)

    def _write(self, line: bytes) -> None:
        """Collect lines until the next iteration of the event loop, to save system calls."""
        if self._out is None or self._out.is_closing():
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(line)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent and self._out is not None and not self._out.is_closing():
            self._out.write(b"".join(unsent))
