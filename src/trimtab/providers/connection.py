"""An HTTP/1.1 connection: writes a request in pieces, and reads the answer as it arrives."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.providers.http1 import Head, MessageParser, ProtocolError

_WRITE_BLOCK = 1024 * 1024
_READ_AHEAD = 1024 * 1024


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits in seconds: to connect, until the first byte, and between two reads."""

    connect: float = 30.0
    first_byte: float = 300.0
    between_bytes: float = 120.0


class ConnectionGone(Exception):
    """Raised when the peer closes the connection before the first byte of the answer."""


class Connection(asyncio.Protocol):
    """A connection to `origin`, for one exchange at a time."""

    def __init__(self, origin: str, timeouts: Timeouts) -> None:
        self.origin = origin
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.idle_since = 0.0
        self._timeouts = timeouts
        self._parser: MessageParser | None = None
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writing_paused = False
        self._reading_paused = False
        self._written = True
        self._heard = False
        self._silent_limit = timeouts.first_byte
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """True if another request may be sent."""
        parser = self._parser
        return (
            self._failure is None
            and self.transport is not None
            and not self.transport.is_closing()
            and self._written
            and (parser is None or _is_reusable(parser))
        )

    @property
    def complete(self) -> bool:
        """True once the whole answer has arrived."""
        return self._parser is not None and self._parser.complete

    @property
    def _answered(self) -> bool:
        return self._parser is not None and self._parser.head is not None

    async def exchange(
        self,
        head: bytes,
        body: Sequence[bytes] = (),
        *,
        tunnel: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> Head:
        """Send a request and wait for the head of the answer; call `on_sent` in between."""
        self._parser = parser = MessageParser(tunnel=tunnel)
        self._pieces = []
        self._buffered = 0
        self._silent_limit = self._timeouts.first_byte
        self._heard = False
        self._written = False
        await self._write(head, body)
        if on_sent is not None:
            on_sent()
        while parser.head is None:
            await self._wait()
        return parser.head

    async def receive(self) -> bytes:
        """Return the next bytes of the answer's body; empty when it is complete."""
        while not self._pieces:
            if self.complete:
                return b""
            await self._wait()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._buffered = 0
        if self._reading_paused and self.transport is not None:
            self._reading_paused = False
            self.transport.resume_reading()
        return data

    def rest(self) -> None:
        """Mark the connection as idle after an exchange, without a time limit."""
        self.idle_since = self.loop.time()
        self._stop_watching()

    def abort(self) -> None:
        """Close at once, even in the middle of an exchange."""
        self._stop_watching()
        if self._failure is None:
            self._failure = ConnectionGone()
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(_WRITE_BLOCK)

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None or parser.complete:
            # No request is open, so this cannot be an answer.
            self.abort()
            return
        self._heard = True
        self._silent_limit = self._timeouts.between_bytes
        self._deadline = self.loop.time() + self._silent_limit
        try:
            pieces = parser.feed(data)
        except ProtocolError as error:
            self._fail(_broken(str(error)))
            return
        if pieces:
            self._pieces += pieces
            self._buffered += len(data)
            if self._buffered > _READ_AHEAD and self.transport is not None:
                self._reading_paused = True
                self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._ended(None)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._ended(error)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake()

    async def _write(self, head: bytes, body: Sequence[bytes]) -> None:
        block, size = [head], len(head)
        for piece in body:
            block.append(piece)
            size += len(piece)
            if size >= _WRITE_BLOCK:
                await self._send(b"".join(block))
                block, size = [], 0
                if self._answered:
                    return
        await self._send(b"".join(block))
        self._written = True

    async def _send(self, data: bytes) -> None:
        if self._failure is not None or self.transport is None:
            raise self._failure or ConnectionGone()
        self.transport.write(data)
        # An early answer such as 413 ends the wait: the peer may not read the rest.
        while self._writing_paused and not self._answered:
            await self._wait()

    async def _wait(self) -> None:
        """Wait for data or for room to write; raise the failure if the connection ended."""
        self._raise_failure()
        self._watch()
        self._waiter = self.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None and not self.complete:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        if self.transport is not None:
            self.transport.abort()
        self._wake()

    def _ended(self, error: Exception | None) -> None:
        parser = self._parser
        if parser is not None and self._heard and not parser.complete:
            try:
                if error is not None:
                    raise ProtocolError(str(error))
                parser.end()
            except ProtocolError as cut:
                self._fail(_broken(str(cut)))
                return
        self._stop_watching()
        if self._failure is None:
            self._failure = ConnectionGone(*([error] if error else []))
        self._wake()

    def _watch(self) -> None:
        """Set the time limit of a wait; a timer that ends before it stays, and is set again."""
        self._deadline = self.loop.time() + self._silent_limit
        if self._timer is not None and self._timer.when() > self._deadline:
            self._stop_watching()
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._check)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """Fail if a caller has waited too long without data, else set the timer again."""
        now = self.loop.time()
        if self._waiter is None:
            self._deadline = now + self._silent_limit
        if now < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._check)
            return
        self._timer = None
        self._fail(
            ModelError(
                f"The service sent nothing for {self._silent_limit:g} s; try again, or "
                "check that the service is up.",
                category="transport",
                code="stalled",
            )
        )


def _is_reusable(parser: MessageParser) -> bool:
    head = parser.head
    return parser.complete and head is not None and not parser.rest and head.keeps_alive


def _broken(reason: str) -> ModelError:
    return ModelError(f"The answer was cut off ({reason}); try again.", category="transport")
