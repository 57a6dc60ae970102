"""A client of a live session that another process hosts, by the session's socket."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.host.ports import ClientGone
from trimtab.host.session_socket import connect
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import UNKNOWN_METHOD, Incoming, RpcError

PREFIX = "failed with message: "


class _Notice(msgspec.Struct, rename="camel"):
    session_id: str
    event: msgspec.Raw


class Visitor(Peer):
    """A connection to the process that hosts a session."""

    def __init__(self, session_id: str) -> None:
        self.gone = asyncio.Event()
        super().__init__(self._refuse_request, lambda _: self.gone.set())
        self.session_id = session_id
        self.on_event: Callable[[Event, bytes], None] = lambda _event, _line: None

    @classmethod
    async def reach(cls, session_id: str, folder: str) -> "Visitor":
        """Connect to the session in a folder. Raises `OSError` if no process hosts it."""
        visitor = cls(session_id)
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: visitor, connect(folder))
        return visitor

    async def call(self, method: str, **params: Any) -> JsonObject:
        """Call a method of the session. Raises `UsageError` with the reason if it fails."""
        try:
            reply = await self.ask(method, {"sessionId": self.session_id, **params})
        except RpcError as error:
            raise UsageError(error.message.partition(PREFIX)[2] or error.message) from None
        except ClientGone:
            raise UsageError(f"Session {self.session_id} has ended; resume it instead.") from None
        return reply if isinstance(reply, dict) else {}

    async def join(self) -> None:
        """Follow the session and answer its questions, without taking part in its set-up."""
        await self.call(
            "session.resume",
            disableResume=True,
            continuePendingWork=True,
            requestPermission=True,
            requestUserInput=True,
            requestExitPlanMode=True,
        )

    def _on_notification(self, message: Incoming) -> None:
        if message.method != "session.event":
            return
        notice = msgspec.json.decode(message.params, type=_Notice)
        line = bytes(notice.event)
        self.on_event(decode(line), line)

    async def _refuse_request(self, peer: Peer, method: str, params: msgspec.Raw) -> Any:
        """Leave questions open: they arrive as events too, and are answered by their ids."""
        if method in ("userInput.request", "exitPlanMode.request"):
            await asyncio.get_running_loop().create_future()
        raise RpcError(UNKNOWN_METHOD, f"Unhandled method {method}")
