"""HTTP transports of MCP: streamable HTTP, and the older HTTP with server-sent events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import HttpAnswer, ServerAccess
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, ServerProblem, decode, encode
from trimtab.mcp.transport import Deliver

REDIRECTS = (307, 308)
"""The redirects that repeat the request with the same method."""
MAX_REDIRECTS = 3
EVENT_STREAM = "text/event-stream"
SESSION = "mcp-session-id"
ACCEPT = {"Accept": f"application/json, {EVENT_STREAM}", "Content-Type": "application/json"}
DELETE_SECONDS = 2.0
RECONNECT_DELAYS = (1.0, 2.0, 5.0, 15.0, 60.0)
"""The seconds before each attempt to reopen the server's stream."""


class HttpChannel:
    """Streamable HTTP: messages are posted, and an answer is JSON or a stream of events."""

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self._requests = HttpRequests(server, access)
        self._deliver: Deliver = lambda _: None
        self._session_headers: dict[str, str] = {}
        self._listening: asyncio.Task[None] | None = None

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver = deliver

    async def send(self, message: JsonObject) -> bool:
        requests, headers = self._requests, ACCEPT | self._session_headers
        answer = await requests.request("POST", requests.url, headers, encode(message))
        answered = False
        try:
            if message.get("method") == "initialize" and SESSION in answer.headers:
                self._session_headers["Mcp-Session-Id"] = answer.headers[SESSION]
            request_id = message.get("id") if "method" in message else None
            async for received in requests.messages(answer):
                self._deliver(received)
                is_answer = "method" not in received and received.get("id") == request_id
                if request_id is not None and is_answer:
                    answered = True
                    break
        finally:
            answer.close(expect_end=answered)
        return False

    def ready(self, version: str) -> None:
        self._session_headers["MCP-Protocol-Version"] = version
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        """Receive messages that the server initiates, if it offers a stream; most do not."""
        for delay in RECONNECT_DELAYS:
            try:
                await self._read_stream()
            except ServerProblem as problem:
                if not problem.gone:
                    return
            await asyncio.sleep(delay)

    async def _read_stream(self) -> None:
        requests, headers = self._requests, {"Accept": EVENT_STREAM} | self._session_headers
        answer = await requests.request("GET", requests.url, headers)
        try:
            async for message in requests.messages(answer):
                self._deliver(message)
        finally:
            answer.close()

    async def aclose(self) -> None:
        await _cancel(self._listening)
        if "Mcp-Session-Id" in self._session_headers:
            with suppress(TimeoutError, ServerProblem):
                async with asyncio.timeout(DELETE_SECONDS):
                    url, headers = self._requests.url, self._session_headers
                    (await self._requests.request("DELETE", url, headers)).close()


class SseChannel:
    """HTTP with server-sent events, used by protocol versions before 2025-03-26.

    One stream carries all messages of the server; its first event is the address to post to.
    """

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self._requests = HttpRequests(server, access)
        self._deliver: Deliver = lambda _: None
        self._lost: Callable[[str], None] = lambda _: None
        self._target: asyncio.Future[str] | None = None
        self._stream: asyncio.Task[None] | None = None

    def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        self._deliver, self._lost = deliver, lost
        loop = asyncio.get_running_loop()
        self._target = loop.create_future()
        self._stream = loop.create_task(self._read())

    async def send(self, message: JsonObject) -> bool:
        assert self._target is not None
        url = await asyncio.shield(self._target)
        headers = {"Content-Type": "application/json"}
        (await self._requests.request("POST", url, headers, encode(message))).close()
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        await _cancel(self._stream)
        if self._target is not None:
            self._target.cancel()

    async def _read(self) -> None:
        problem = ServerProblem("its event stream ended", gone=True)
        try:
            await self._read_stream()
        except ServerProblem as error:
            problem = error
        assert self._target is not None
        if not self._target.done():
            self._target.set_exception(problem)
            self._target.exception()  # mark it as retrieved: nobody may be waiting for it
        self._lost(str(problem))

    async def _read_stream(self) -> None:
        assert self._target is not None
        requests = self._requests
        answer = await requests.request("GET", requests.url, {"Accept": EVENT_STREAM})
        try:
            async for event in requests.events(answer):
                if not self._target.done():
                    target = urljoin(requests.url, event.decode("utf-8", "replace").strip())
                    self._target.set_result(requests.same_origin(target))
                    continue
                for message in decode(event):
                    self._deliver(message)
        finally:
            answer.close()


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))


class HttpRequests:
    """Sends requests to a server's origin only, with the headers of its configuration."""

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self.url = server.url
        self._configured = dict(server.headers)
        self._access = access
        self._http = access.http()

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """Send a request and return a successful answer. Raises `ServerProblem`."""
        headers = {**headers, **self._configured}
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = await self._http.request(method, url, headers, [body] if body else [])
            except ModelError as error:
                raise _unreachable(url, error) from None
            if answer.status not in REDIRECTS:
                break
            answer.close()
            url = self.same_origin(urljoin(url, answer.headers.get("location", "")))
        if 200 <= answer.status < 300:
            return answer
        try:
            raise await self._read_error(method, answer)
        finally:
            answer.close()

    def same_origin(self, url: str) -> str:
        """Return an address if it has the configured origin, since the headers may be secret.

        Raises `ServerProblem`.
        """
        if urlsplit(url)[:2] != urlsplit(self.url)[:2]:
            raise ServerProblem(
                f"it redirects to another origin, {'://'.join(urlsplit(url)[:2])}; configure that "
                "address if you trust it"
            )
        return url

    async def messages(self, answer: HttpAnswer) -> AsyncIterator[JsonObject]:
        """Yield the messages of an answer as they arrive. Raises `ServerProblem`."""
        content_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type == EVENT_STREAM:
            async for event in self.events(answer):
                for message in decode(event):
                    yield message
            return
        for message in decode(await _read(answer, MAX_MESSAGE_BYTES)):
            yield message

    async def events(self, answer: HttpAnswer) -> AsyncIterator[bytes]:
        """Yield the data of an answer's events as they arrive. Raises `ServerProblem`."""
        reader = self._access.read_events()
        while chunk := await _receive(answer):
            try:
                found = reader.feed(chunk)
            except ValueError:
                problem = f"it sent an event of more than {MAX_MESSAGE_BYTES >> 20} MB"
                raise ServerProblem(problem, gone=True) from None
            for event in found:
                yield event

    async def _read_error(self, method: str, answer: HttpAnswer) -> ServerProblem:
        status = answer.status
        if status == 401:
            return ServerProblem(
                "it requires authentication (401); put a token into its headers", needs_auth=True
            )
        reason = _read_reason(await _read(answer, 64 * 1024))
        return ServerProblem(
            f"it answered {method} with {status}{reason}; check its address and headers",
            gone=status == 404,
        )


def _read_reason(body: bytes) -> str:
    """Return the error message in the body of an answer, in parentheses; empty if none."""
    for message in decode(body):
        error = message.get("error")
        text = error.get("message") if isinstance(error, dict) else error
        if isinstance(text, str):
            return f" ({text[:200]})"
    return ""


async def _receive(answer: HttpAnswer) -> bytes:
    try:
        return await answer.receive()
    except ModelError as error:
        raise ServerProblem(f"its answer was cut off ({error.category})", gone=True) from None


async def _read(answer: HttpAnswer, limit: int) -> bytes:
    pieces, size = [], 0
    while chunk := await _receive(answer):
        pieces.append(chunk)
        size += len(chunk)
        if size > limit:
            raise ServerProblem(f"it sent an answer of more than {limit >> 10} KB", gone=True)
    return b"".join(pieces)


def _unreachable(url: str, error: ModelError) -> ServerProblem:
    host = urlsplit(url).hostname or "its host"
    if error.code == "offline":
        return ServerProblem(f"{host} may not be contacted offline; run without --offline")
    if error.category == "invalid" and error.status is None and "URL" in error.message:
        return ServerProblem("its url is not a valid http or https address; correct it")
    return ServerProblem(error.message.rstrip("."), gone=error.category == "transport")
