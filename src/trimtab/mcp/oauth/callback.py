"""Receives the answer of an authorization server on a port of this machine."""

import asyncio
from typing import Self
from urllib.parse import parse_qs, urlsplit

from trimtab.mcp.messages import ServerProblem

PATH = "/callback"
MAX_HEAD_BYTES = 16 * 1024
READ_SECONDS = 10.0
PAGE = (
    "<!doctype html><meta charset=utf-8><title>Trimtab</title>"
    "<p>You have signed in. You can close this window.</p>"
)
OTHER = "<!doctype html><meta charset=utf-8><title>Trimtab</title><p>This is not a sign-in.</p>"


class Callback:
    """A listener that waits for one answer with the right state."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self._state = ""
        self.redirect_uri = ""

    async def open(self, port: int, *, fixed: bool) -> Self:
        """Listen on a port, or on any if that one is taken and not `fixed`."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        except OSError as error:
            if fixed or not port:
                raise ServerProblem(
                    f"port {port} of this machine cannot be used for the sign-in "
                    f"({error.strerror}); set another redirectPort"
                ) from None
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        chosen = self._server.sockets[0].getsockname()[1]
        self.redirect_uri = f"http://127.0.0.1:{chosen}{PATH}"
        return self

    async def receive(self, state: str, seconds: float) -> dict[str, str]:
        """Return the parameters of the answer with this state. Raises `TimeoutError`."""
        assert self._answer is not None
        self._state = state
        async with asyncio.timeout(seconds):
            return await self._answer

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            accepted = self._take(head[:MAX_HEAD_BYTES].split(b"\r\n")[0].decode("latin-1"))
            body = (PAGE if accepted else OTHER).encode()
            status = "200 OK" if accepted else "400 Bad Request"
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # not the browser's answer
        finally:
            writer.close()

    def _take(self, line: str) -> bool:
        """Read the first line of a request; return True if it is the expected answer."""
        assert self._answer is not None
        method, _, rest = line.partition(" ")
        url = urlsplit(rest.rpartition(" ")[0])
        given = {name: values[0] for name, values in parse_qs(url.query).items()}
        if method != "GET" or url.path != PATH or not self._state:
            return False
        if given.get("state") != self._state:
            return False
        if not self._answer.done():
            self._answer.set_result(given)
        return True
