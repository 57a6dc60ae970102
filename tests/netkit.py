"""Small servers for tests of the HTTP client: what they do is up to the test."""

import asyncio
import datetime
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Listener:
    """A server and what it saw."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.heads: list[str] = []
        self.gone = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    async def idle(self) -> None:
        """Wait until every conversation is over."""
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def read(self, reader: StreamReader) -> bytes:
        """Read a request with a content length; gives its body."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        length = 0
        for line in head.splitlines():
            if line.lower().startswith("content-length:"):
                length = int(line.split(":")[1])
        return await reader.readexactly(length)


@asynccontextmanager
async def listening(
    converse: Callable[[Listener, StreamReader, StreamWriter], Awaitable[None]],
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Listener]:
    listener = Listener()
    tasks = listener.tasks
    writers: list[StreamWriter] = []

    async def handle(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        listener.connections += 1
        writers.append(writer)
        try:
            await converse(listener, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            listener.gone.set()
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.close()
        await asyncio.gather(*(one.wait_closed() for one in writers), return_exceptions=True)
        await server.wait_closed()


def make_certificate(folder: Path, host: str) -> Path:
    """A self-signed certificate for `host` and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = folder / "both.pem"
    both.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return both
