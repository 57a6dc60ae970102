"""Questions of a session that wait for an answer; the first answer wins."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import ClassVar, Protocol

    class Request(Protocol):
        """An event that asks something, and is answered by its request id."""

        wire_name: ClassVar[str]

        @property
        def request_id(self) -> str: ...


class Questions:
    """The open questions of a session, by request id. They survive the client asked first."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[Any]] = {}
        self.requests: dict[str, Request] = {}
        """The requests that are shown in one place and may be answered from another."""

    async def wait(self, request_id: str, announce: Callable[[], object] = lambda: None) -> Any:
        """Open a question, announce it, and wait for its answer, which may come at once.

        A question that nobody awaits any more is not open.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[request_id] = answer
        try:
            announce()
            return await answer
        finally:
            self._open.pop(request_id, None)

    async def first_answer(self, request: "Request", ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return whichever comes first: the reply to `ask`, or an answer by the request's id.

        If the answer comes by the id, `ask` is cancelled.
        """
        self.requests[request.request_id] = request
        answer = asyncio.ensure_future(self.wait(request.request_id))
        reply = asyncio.ensure_future(ask())
        try:
            await asyncio.wait((answer, reply), return_when=asyncio.FIRST_COMPLETED)
            return (reply if reply.done() and not answer.done() else answer).result()
        finally:
            del self.requests[request.request_id]
            for task in (answer, reply):
                task.cancel()
            await asyncio.gather(answer, reply, return_exceptions=True)

    def is_open(self, request_id: str) -> bool:
        """Return True if somebody still waits for the answer."""
        return request_id in self._open

    def answer(self, request_id: str, value: Any) -> bool:
        """Answer a question; return False if it is not open."""
        future = self._open.pop(request_id, None)
        if future is None or future.done():
            return False
        future.set_result(value)
        return True
