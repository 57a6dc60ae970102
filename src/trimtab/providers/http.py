"""A small HTTP/1.1 client: the only module that opens connections to other machines.

Every destination comes from configuration. Proxies and extra certificates come from the
environment, loopback never goes through a proxy, and `offline` allows loopback only.
"""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence

from trimtab.contracts.errors import ModelError
from trimtab.providers.addresses import Url, parse_url, proxy_for
from trimtab.providers.connection import Connection, ConnectionGone, Timeouts
from trimtab.providers.http1 import Head
from trimtab.providers.tls import TlsContext

_IDLE_SECONDS = 60.0
_IDLE_PER_ORIGIN = 8
_DRAIN_SECONDS = 1.0
_LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")

Resolve = Callable[[Url], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host; no other address is contacted."""


class Response:
    """An answer whose head has arrived. It must always be closed, however reading ends."""

    def __init__(self, client: "HttpClient", connection: Connection, head: Head) -> None:
        self._client = client
        self._connection = connection
        self.status = head.status
        self.headers = head.headers

    async def receive(self) -> bytes:
        """Return the next bytes of the body; empty when it is complete."""
        try:
            return await self._connection.receive()
        except ConnectionGone:
            raise _no_answer(self._connection.origin) from None

    async def read(self, limit: int = 256 * 1024 * 1024) -> bytes:
        """Return the rest of the body."""
        pieces, size = [], 0
        while data := await self.receive():
            pieces.append(data)
            size += len(data)
            if size > limit:
                raise ModelError(
                    f"The model service's answer is larger than {limit >> 20} MB; check that its "
                    "address is that of a model service.",
                    category="invalid",
                )
        return b"".join(pieces)

    def close(self, *, expect_end: bool = False) -> None:
        """Release the connection, or close it if the answer is incomplete.

        With `expect_end` only the end of the body is outstanding: wait a moment for it in the
        background, so that the connection can be reused.
        """
        connection = self._connection
        if connection.complete:
            self._client.release(connection)
        elif expect_end:
            self._client.drain(connection)
        else:
            connection.abort()


class HttpClient:
    """Makes requests, and keeps idle connections for reuse."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        offline: bool = False,
        timeouts: Timeouts | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._environment = environment
        self._resolve = resolve
        self._offline = offline
        self.timeouts = timeouts or Timeouts()
        self._tls = TlsContext(environment)
        self._idle: dict[str, list[Connection]] = {}
        self._draining: set[asyncio.Task[None]] = set()

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Sequence[bytes] = (),
        on_sent: Callable[[], object] | None = None,
    ) -> Response:
        """Send a request and wait for the head of the answer.

        `on_sent` is called while the service has the request: for work that need not delay it.

        If an idle connection turns out to be closed before the first byte of an answer, the
        request is sent once more on a new connection.
        """
        address = parse_url(url)
        if self._offline and not address.is_loopback:
            raise ModelError(
                f"{address.authority} may not be contacted offline; use a model server on this "
                "machine or go online.",
                category="invalid",
                code="offline",
            )
        proxy = proxy_for(address, self._environment)
        direct = proxy is None or address.scheme == "https"
        head = _request_head(method, address, headers, body, None if direct else proxy)
        idle = self._take(address.origin)
        if idle is not None:
            try:
                return await self._exchange(idle, head, body, on_sent)
            except ConnectionGone:
                pass
        connection = await self._connect(address, proxy)
        try:
            return await self._exchange(connection, head, body, on_sent)
        except ConnectionGone:
            raise _no_answer(address.origin) from None

    def release(self, connection: Connection) -> None:
        """Keep a connection for reuse after its exchange, if possible."""
        connection.rest()
        idle = self._idle.setdefault(connection.origin, [])
        if connection.usable and len(idle) < _IDLE_PER_ORIGIN:
            idle.append(connection)
        else:
            connection.abort()

    def drain(self, connection: Connection) -> None:
        """Read the end of an unneeded answer in the background, then keep the connection."""
        task = asyncio.ensure_future(self._drain(connection))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def aclose(self) -> None:
        """Close all connections that are not in use."""
        draining = list(self._draining)
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)
        idle = [connection for group in self._idle.values() for connection in group]
        self._idle.clear()
        for connection in idle:
            connection.abort()
        # A closed transport calls its protocol one step later; the loop may end after this.
        await asyncio.sleep(0)

    def _take(self, origin: str) -> Connection | None:
        loop = asyncio.get_running_loop()
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            fresh = loop.time() - connection.idle_since < _IDLE_SECONDS
            if connection.loop is loop and fresh and connection.usable:
                return connection
            if connection.loop is loop:
                connection.abort()
        return None

    async def _exchange(
        self,
        connection: Connection,
        head: bytes,
        body: Sequence[bytes],
        on_sent: Callable[[], object] | None,
    ) -> Response:
        try:
            answer = await connection.exchange(head, body, on_sent=on_sent)
            return Response(self, connection, answer)
        except BaseException:
            connection.abort()
            raise

    async def _drain(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await connection.receive():
                    pass
        except (TimeoutError, ModelError, ConnectionGone):
            connection.abort()
        except asyncio.CancelledError:
            connection.abort()
            raise
        else:
            self.release(connection)

    async def _connect(self, address: Url, proxy: Url | None) -> Connection:
        hop = proxy or address
        connection = Connection(address.origin, self.timeouts)
        try:
            async with asyncio.timeout(self.timeouts.connect):
                await self._open(connection, address, proxy)
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError):
                raise ModelError(
                    f"No connection to {hop.origin} within {self.timeouts.connect:g} s; "
                    "check the network and the address, then try again.",
                    category="transport",
                ) from None
            if isinstance(error, OSError):
                raise _cannot_connect(hop, error) from error
            if isinstance(error, ConnectionGone):
                raise _no_answer(hop.origin) from None
            raise
        return connection

    async def _hosts(self, hop: Url) -> Sequence[str] | None:
        return None if self._resolve is None else await self._resolve(hop)

    async def _open(self, connection: Connection, address: Url, proxy: Url | None) -> None:
        hop = proxy or address
        # Certificates load during the TCP handshake.
        secure = "https" in {address.scheme, hop.scheme}
        loading = asyncio.ensure_future(self._tls.get()) if secure else None
        if loading:
            loading.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await _dial(connection, hop, await self._hosts(hop) if proxy is None else None)
            if proxy is not None and loading and hop.scheme == "https":
                await _start_tls(connection, hop.host, await loading)
            if proxy is not None and address.scheme == "https":
                await _open_tunnel(connection, address, proxy)
            if loading and address.scheme == "https":
                await _start_tls(connection, address.host, await loading)
        finally:
            if loading:
                loading.cancel()


async def _dial(connection: Connection, hop: Url, hosts: Sequence[str] | None) -> None:
    failure: OSError | None = None
    # Names of this machine are not looked up.
    is_local = hop.host == "localhost" or hop.host.endswith(".localhost")
    for host in hosts or (_LOOPBACK_ADDRESSES if is_local else (hop.host,)):
        try:
            await connection.loop.create_connection(
                lambda: connection, host, hop.port, happy_eyeballs_delay=0.25
            )
        except OSError as error:
            failure = failure or error
        else:
            return
    if failure is not None:
        raise failure


async def _start_tls(connection: Connection, host: str, context: ssl.SSLContext) -> None:
    assert connection.transport is not None
    transport = await connection.loop.start_tls(
        connection.transport, connection, context, server_hostname=host
    )
    if transport is None:
        raise ConnectionGone
    connection.transport = transport


async def _open_tunnel(connection: Connection, address: Url, proxy: Url) -> None:
    host = f"[{address.host}]" if ":" in address.host else address.host
    target = f"{host}:{address.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_proxy_authorization(proxy), "", ""]
    answer = await connection.exchange("\r\n".join(lines).encode("latin-1"), tunnel=True)
    connection.rest()
    if not 200 <= answer.status < 300:
        raise ModelError(
            f"The proxy {proxy.authority} refused to connect to {target} (status {answer.status}); "
            "correct HTTPS_PROXY or add the host to NO_PROXY.",
            category="transport" if answer.status >= 500 else "invalid",
            status=answer.status,
        )


def _request_head(
    method: str, address: Url, headers: Mapping[str, str], body: Sequence[bytes], proxy: Url | None
) -> bytes:
    lines = [
        f"{method} {address.origin if proxy else ''}{address.target} HTTP/1.1",
        f"Host: {address.authority}",
    ]
    if body or method not in {"GET", "HEAD"}:
        lines.append(f"Content-Length: {sum(map(len, body))}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if proxy:
        lines += _proxy_authorization(proxy)
    if any("\r" in line or "\n" in line for line in lines):
        raise ModelError(
            "A request header contains a line break; correct the configured headers or the key.",
            category="invalid",
        )
    text = "\r\n".join([*lines, "", ""])
    # The format allows Latin-1; other characters are sent as UTF-8, which most servers expect.
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _proxy_authorization(proxy: Url) -> list[str]:
    if not proxy.user:
        return []
    from urllib.parse import unquote_to_bytes  # not needed for a start without a proxy

    credentials = b64encode(unquote_to_bytes(proxy.user)).decode("ascii")
    return [f"Proxy-Authorization: Basic {credentials}"]


def _cannot_connect(hop: Url, error: OSError) -> ModelError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return ModelError(
            f"The certificate of {hop.authority} is not trusted ({error.verify_message}); put the "
            "authority's certificate into a file and name it in NODE_EXTRA_CA_CERTS.",
            category="invalid",
        )
    if isinstance(error, socket.gaierror):
        reason, advice = "its name cannot be resolved", "check the address and the network"
    elif isinstance(error, ConnectionRefusedError):
        reason, advice = "nothing listens there", "start the service or correct its address"
    else:
        reason, advice = error.strerror or str(error), "check the address and the network"
    return ModelError(f"{hop.origin} cannot be reached ({reason}); {advice}.", category="transport")


def _no_answer(origin: str) -> ModelError:
    return ModelError(
        f"{origin} closed the connection without an answer; try again.", category="transport"
    )
