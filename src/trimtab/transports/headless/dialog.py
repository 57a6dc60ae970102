"""A plain conversation in a terminal: lines in, answers out, nothing is ever redrawn."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import TrustAnswer, TrustQuestion
from trimtab.contracts.run import Prompt
from trimtab.runtime.live import LiveSession
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.questions import (
    describe_question,
    describe_request,
    describe_trust,
)

if TYPE_CHECKING:
    from trimtab.contracts.questions import Question, Response

LONGEST_NUMBER = 4

_ANSWERS = {
    "y": "approve-once",
    "yes": "approve-once",
    "s": "approve-for-session",
    "a": "approve-for-location",
}
_LEAVE = ("/exit", "/quit")
HINT = "Type a prompt and Enter; Ctrl-C stops the agent; /exit or Ctrl-D leaves.\n"


class Lines:
    """Lines typed at a terminal, read without blocking the loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = b""
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)

    async def next(self) -> str | None:
        """The next line, or None at the end of input."""
        return await self._queue.get()

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, 4096)
        except OSError:
            data = b""
        *whole, self._buffer = (self._buffer + data).split(b"\n")
        for line in whole:
            self._queue.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            self._queue.put_nowait(None)


class Dialog:
    """Prompts from a terminal, one after another, in one session.

    `prepare` makes a prompt of the words; it may raise a `TrimtabError`.
    """

    def __init__(
        self, notes: Output, first: str | None, prepare: Callable[[str], Prompt | str]
    ) -> None:
        self._notes = notes
        self._first = first
        self._prepare = prepare
        self._lines = Lines(0)
        self._live: LiveSession | None = None
        self._turn = asyncio.Lock()

    async def run(self, open_session: Callable[[], Awaitable[LiveSession]]) -> int:
        """Talk until the person leaves; returns the exit code."""
        self._lines.start()
        main = asyncio.current_task()
        assert main is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt, main)
        try:
            self._live = await open_session()
            self._notes.write(HINT.encode())
            await self._talk(self._live)
        except asyncio.CancelledError:
            self._notes.write(b"\n")
        finally:
            self._lines.close()
            if self._live is not None:
                await self._live.close()
        return 0

    async def _talk(self, live: LiveSession) -> None:
        prompt = self._first
        while True:
            if prompt is None:
                self._notes.write(b"> ")
                prompt = await self._lines.next()
            if prompt is None or prompt.strip() in _LEAVE:
                return
            if prompt.strip():
                await self._send(live, prompt)
            prompt = None

    async def _send(self, live: LiveSession, text: str) -> None:
        try:
            prompt = self._prepare(text)
        except TrimtabError as error:
            self._notes.write(f"{error.message}\n".encode())
            return
        await live.ask(prompt)

    def _interrupt(self, main: "asyncio.Task[object]") -> None:
        if self._live is not None and self._live.busy:
            self._live.stop()
        else:
            main.cancel()

    async def ask(self, request_id: str, request: JsonObject) -> Answer:
        """Put a permission question to the person."""
        said = await self._put(describe_request(request))
        kind = _ANSWERS.get(said.lower())
        if kind == "approve-once" or (kind and request.get("suggestedRules")):
            return Answer(kind=kind)
        return Answer(kind="reject", feedback=said if said.lower() not in ("n", "no", "") else None)

    async def ask_trust(self, question: TrustQuestion) -> TrustAnswer:
        """Ask whether the session's folder may configure the agent."""
        said = (await self._put(describe_trust(question))).lower()
        if said in ("y", "yes"):
            return "always"
        return "once" if said in ("o", "once") else "no"

    async def ask_person(self, question: "Question") -> "Response | None":
        """Put a question of the agent's to the person; an empty line is no answer."""
        from trimtab.contracts.questions import Response

        while said := await self._put(describe_question(question)):
            number = int(said) - 1 if said.isdecimal() and len(said) < LONGEST_NUMBER else -1
            if 0 <= number < len(question.choices):
                return Response(text=question.choices[number], freeform=False)
            if question.allow_freeform or not question.choices:
                return Response(text=said, freeform=said not in question.choices)
        return None

    async def _put(self, question: str) -> str:
        """One question at a time: the next line is the answer to what is shown."""
        async with self._turn:
            self._notes.write(f"\n{question}".encode("utf-8", "replace"))
            return (await self._lines.next() or "").strip()
