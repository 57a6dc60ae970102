"""A request without a session that asks its client for input before it is answered."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import new_id
from trimtab.mcp.messages import RemoteError, read_error

INPUT_REQUIRED = "input_required"


class OpenCall:
    """The work for a request. Its questions are results, which the client answers by repeating it.

    `state` names the call in those results.
    """

    def __init__(self, work: Coroutine[Any, Any, JsonObject]) -> None:
        self.state = new_id()
        self._task = asyncio.ensure_future(work)
        self._questions: dict[str, tuple[JsonObject, asyncio.Future[JsonObject]]] = {}
        self._asked = asyncio.Event()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Put a question to the client and wait for its answer. Raises `RemoteError`."""
        name = f"input-{len(self._questions) + 1}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._questions[name] = ({"method": method, "params": params}, answer)
        self._asked.set()
        return await answer

    def give(self, responses: Any) -> None:
        """Take the client's answers; those that are missing are asked for again."""
        for name, given in (responses if isinstance(responses, dict) else {}).items():
            question, answer = self._questions.get(name, ({}, None))
            if answer is None or answer.done():
                continue
            if not isinstance(given, dict):
                answer.set_exception(RemoteError(f"{question['method']} was not answered"))
            elif "error" in given and set(given) <= {"error", "id", "jsonrpc"}:
                answer.set_exception(read_error(given["error"]))
            else:
                answer.set_result(given)

    async def result(self) -> JsonObject:
        """Return the answer to the request, or its open questions. Raises `RemoteError`."""
        while not self._task.done():
            waiting = self._open_questions()
            if waiting:
                return {
                    "resultType": INPUT_REQUIRED,
                    "inputRequests": waiting,
                    "requestState": self.state,
                }
            self._asked.clear()
            asked = asyncio.ensure_future(self._asked.wait())
            try:
                await asyncio.wait((self._task, asked), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                await self.aclose()
                raise
            finally:
                asked.cancel()
        return self._task.result()

    def _open_questions(self) -> dict[str, JsonObject]:
        return {
            name: question
            for name, (question, answer) in self._questions.items()
            if not answer.done()
        }

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))
