"""Questions of a session that wait for an answer; the first answer wins."""

import asyncio
from collections.abc import Awaitable
from typing import Any


class Questions:
    """The open questions of a session, by request id. They survive the client asked first."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[Any]] = {}

    def open(self, request_id: str) -> Awaitable[Any]:
        """Open a question and return its future answer, which may arrive before it is awaited."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[request_id] = answer
        return answer

    async def wait(self, request_id: str) -> Any:
        """Open a question and wait for its answer."""
        try:
            return await self.open(request_id)
        finally:
            self._open.pop(request_id, None)

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
