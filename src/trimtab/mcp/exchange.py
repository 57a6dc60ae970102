"""Requests to a server that has an address: what they carry, and what an answer means."""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urljoin, urlsplit

from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import HttpAnswer, ServerAccess
from trimtab.mcp.messages import LARGEST, ServerProblem, decode

MOVED = (307, 308)
"""Answers that want the same request at another address."""
MOST_MOVES = 3
EVENTS = "text/event-stream"


class Exchange:
    """Sends requests with the headers of a server's configuration, and to its origin only."""

    def __init__(self, server: McpServer, reach: ServerAccess) -> None:
        self.url = server.url
        self._configured = dict(server.headers)
        self._reach = reach
        self._http = reach.http()

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """An answer that is no refusal. Raises `ServerProblem`."""
        given = {**headers, **self._configured}
        for _ in range(MOST_MOVES + 1):
            try:
                answer = await self._http.request(method, url, given, [body] if body else [])
            except ModelError as error:
                raise _unreachable(url, error) from None
            if answer.status not in MOVED:
                break
            answer.close()
            url = self.same_origin(urljoin(url, answer.headers.get("location", "")))
        if 200 <= answer.status < 300:
            return answer
        try:
            raise await self._refusal(method, answer)
        finally:
            answer.close()

    def same_origin(self, url: str) -> str:
        """The address, if it is at the server that was configured: headers may be secrets."""
        if urlsplit(url)[:2] != urlsplit(self.url)[:2]:
            raise ServerProblem(
                f"it leads to another place, {'://'.join(urlsplit(url)[:2])}; configure that if it "
                "is meant"
            )
        return url

    async def messages(self, answer: HttpAnswer) -> AsyncIterator[JsonObject]:
        """The messages in an answer, as they come. Raises `ServerProblem`."""
        if answer.headers.get("content-type", "").partition(";")[0].strip().lower() == EVENTS:
            async for event in self.events(answer):
                for message in decode(event):
                    yield message
            return
        for message in decode(await _read(answer, LARGEST)):
            yield message

    async def events(self, answer: HttpAnswer) -> AsyncIterator[bytes]:
        """The data of the events in an answer, as they come. Raises `ServerProblem`."""
        reader = self._reach.read_events()
        while chunk := await _receive(answer):
            try:
                found = reader.feed(chunk)
            except ValueError:
                problem = f"it sent an event of more than {LARGEST >> 20} MB"
                raise ServerProblem(problem, gone=True) from None
            for event in found:
                yield event

    async def _refusal(self, method: str, answer: HttpAnswer) -> ServerProblem:
        status = answer.status
        if status == 401:
            return ServerProblem(
                "it wants to know who asks (401); put a token into its headers", needs_auth=True
            )
        said = _reason(await _read(answer, 64 * 1024))
        return ServerProblem(
            f"it answered {method} with {status}{said}; check its address and headers",
            gone=status == 404,
        )


def _reason(body: bytes) -> str:
    """What an answer says beside its status, if it says it as the protocol wants."""
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
        raise ServerProblem(f"its answer broke off ({error.category})", gone=True) from None


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
        return ServerProblem(f"{host} may not be contacted offline; go online to use it")
    if error.category == "invalid" and error.status is None and "URL" in error.message:
        return ServerProblem("its url is not a valid http or https address; correct it")
    return ServerProblem(error.message.rstrip("."), gone=error.category == "transport")
