"""HTTP requests to one MCP server: its origin only, its headers, and its sign-in."""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urljoin, urlsplit

from trimtab.contracts.customization import McpServer
from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.mcp import EventReader, HttpAnswer, ServerAccess, SignIn
from trimtab.mcp.codec import decode
from trimtab.mcp.messages import MAX_MESSAGE_BYTES, RemoteError, ServerProblem, read_error

REDIRECTS = (307, 308)
"""The redirects that repeat the request with the same method."""
MAX_REDIRECTS = 3
MAX_SIGN_INS = 3
"""The number of tokens that are tried for one request."""
EVENT_STREAM = "text/event-stream"
VERSION_HEADER = "MCP-Protocol-Version"


class HttpRequests:
    """Sends requests to a server's origin only, with the headers of its configuration."""

    def __init__(self, server: McpServer, access: ServerAccess) -> None:
        self.url = server.url
        self._configured = dict(server.headers)
        self._access = access
        self._http = access.http()
        self._name = server.name
        self._has_token = any(name.lower() == "authorization" for name in self._configured)
        self._sign_in: SignIn | None = None
        if access.sign_in is not None and not self._has_token:
            self._sign_in = access.sign_in(server)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """Send a request and return a successful answer.

        Raises `ServerProblem`, or `RemoteError` if the answer is an error of the protocol.
        """
        for attempt in range(MAX_SIGN_INS + 1):
            token = "" if self._sign_in is None else await self._sign_in.token()
            given = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
            answer = await self._send(method, url, {**given, **self._configured}, body)
            if 200 <= answer.status < 300:
                return answer
            challenge = answer.headers.get("www-authenticate", "")
            wanted = answer.status == 401 or (
                answer.status == 403 and "insufficient_scope" in challenge
            )
            if self._sign_in is None or not wanted or attempt == MAX_SIGN_INS:
                break
            answer.close()
            await self._sign_in.renew(answer.status, challenge, token)
        try:
            raise await self._read_error(method, answer, stateless=VERSION_HEADER in headers)
        finally:
            answer.close()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> HttpAnswer:
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = await self._http.request(method, url, headers, [body] if body else [])
            except ModelError as error:
                raise explain_unreachable(url, error) from None
            if answer.status not in REDIRECTS:
                break
            answer.close()
            url = self.same_origin(urljoin(url, answer.headers.get("location", "")))
        return answer

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

    def new_reader(self) -> EventReader:
        return self._access.read_events()

    async def messages(
        self, answer: HttpAnswer, reader: EventReader, *, expected: bool = False
    ) -> AsyncIterator[JsonObject]:
        """Yield the messages of an answer as they arrive.

        Raises `ServerProblem`, also for a document without any message if one is `expected`.
        """
        if find_type(answer) == EVENT_STREAM:
            async for event in self.events(answer, reader):
                for message in decode(event):
                    yield message
            return
        body = await read_body(answer, MAX_MESSAGE_BYTES)
        found = list(decode(body))
        if expected and not found:
            raise ServerProblem(explain_body(answer, body))
        for message in found:
            yield message

    async def events(self, answer: HttpAnswer, reader: EventReader) -> AsyncIterator[bytes]:
        """Yield the data of an answer's events as they arrive. Raises `ServerProblem`."""
        while chunk := await _receive(answer):
            try:
                found = reader.feed(chunk)
            except ValueError:
                problem = f"it sent an event of more than {MAX_MESSAGE_BYTES >> 20} MB; check it"
                raise ServerProblem(problem, gone=True) from None
            for event in found:
                yield event
        for event in reader.end():  # some servers leave out the last blank line
            yield event

    async def _read_error(
        self, method: str, answer: HttpAnswer, *, stateless: bool
    ) -> ServerProblem | RemoteError:
        status = answer.status
        if status == 401:
            return ServerProblem(
                f"it refused the token (401); correct it in the headers of {self._name}, or remove "
                f"it and run `trimtab mcp login {self._name}`"
                if self._has_token
                else f"it wants you to sign in (401); run `trimtab mcp login {self._name}`",
                needs_auth=True,
                status=status,
            )
        body = await read_body(answer, 64 * 1024)
        error = find_error(body)
        if stateless and error is not None and error.code:
            return error
        if 300 <= status < 400:
            location = answer.headers.get("location", "")[:200]
            return ServerProblem(
                f"it redirects ({status}) to {location or 'nowhere'}; configure the address of the "
                "server itself",
                status=status,
            )
        reason = f" ({str(error)[:200]})" if error is not None else ""
        later = status in (429, 500, 502, 503, 504)
        advice = "try again later" if later else "check its address and headers"
        return ServerProblem(
            f"it answered {method} with {status}{reason}; {advice}",
            gone=status == 404,
            status=status,
        )


def find_type(answer: HttpAnswer) -> str:
    """Return the type of an answer's content, without parameters."""
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def explain_body(answer: HttpAnswer, body: bytes) -> str:
    """Return what an answer is that contains no message of the protocol."""
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if not body.strip():
        return "its answer was empty; check its address"
    if encoding not in ("identity", ""):
        return f"its answer is compressed ({encoding[:40]}), which nobody asked for; check it"
    if find_type(answer) == "text/html" or body.lstrip()[:1] == b"<":
        return "it answered with a web page instead of a message of MCP; check its address"
    beginning = body[:40].decode("utf-8", "replace")
    return f"its answer is not a message of MCP (it begins with {beginning!r}); check its address"


def find_error(body: bytes) -> RemoteError | None:
    """Return the error in the body of an answer, or None if there is none with a text."""
    for message in decode(body):
        error = message.get("error")
        text = error.get("message") if isinstance(error, dict) else error
        if isinstance(text, str):
            return read_error(error)
    return None


async def _receive(answer: HttpAnswer) -> bytes:
    try:
        return await answer.receive()
    except ModelError as error:
        raise explain_broken(error) from None


async def read_body(answer: HttpAnswer, limit: int) -> bytes:
    """Return the rest of an answer. Raises `ServerProblem` if it is longer than the limit."""
    pieces, size = [], 0
    while chunk := await _receive(answer):
        pieces.append(chunk)
        size += len(chunk)
        if size > limit:
            most = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit >> 10} KB"
            raise ServerProblem(f"it sent an answer of more than {most}; check it", gone=True)
    return b"".join(pieces)


def explain_unreachable(url: str, error: ModelError) -> ServerProblem:
    """Return a problem for an address that could not be reached."""
    host = urlsplit(url).hostname or "its host"
    if error.code == "offline":
        return ServerProblem(f"{host} may not be contacted offline; run without --offline")
    if error.category == "invalid" and error.status is None and "URL" in error.message:
        return ServerProblem("its url is not a valid http or https address; correct it")
    return explain_broken(error)


def explain_broken(error: ModelError) -> ServerProblem:
    """Return a problem for an exchange that failed, in the words of the HTTP client."""
    text = error.message.rstrip(".")
    return ServerProblem(text[:1].lower() + text[1:], gone=error.category == "transport")
