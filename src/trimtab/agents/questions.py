"""Questions that wait for somebody: the first answer wins."""

import asyncio
from collections.abc import Awaitable
from typing import Any


class Questions:
    """Open questions of a session by request id. They outlive whoever was asked first."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[Any]] = {}

    def open(self, request_id: str) -> Awaitable[Any]:
        """Ask from now on: an answer that comes before anybody waits is kept."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[request_id] = answer
        return answer

    async def wait(self, request_id: str) -> Any:
        """The answer, whenever it comes."""
        try:
            return await self.open(request_id)
        finally:
            self._open.pop(request_id, None)

    def answer(self, request_id: str, value: Any) -> bool:
        """Settle a question; False if it is not open (any more)."""
        waiting = self._open.pop(request_id, None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(value)
        return True

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the questions nobody has answered yet."""
        return tuple(self._open)
