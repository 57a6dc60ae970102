"""A headless run from start to exit code: exactly one result, on every path."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt
from trimtab.runtime.live import LiveSession
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.result import Clock, build_result

DENIED = (
    "A permission was denied and the work is incomplete; allow it, for example with "
    "--allow-all-tools, and resume the session."
)
BY_HOOK = "Denied by preToolUse hook: "
PATIENCE = 60.0
"""Seconds for which a reader may take nothing of the output, as one does who reads page by page."""
CLOSED = Stop(reason="aborted", exit_code=141, message="Nobody reads the output any more.")


class Face(Protocol):
    """How a run is shown: as lines of JSON or as text."""

    def on_event(self, event: Event, line: bytes) -> None: ...

    def on_result(self, result: JsonObject) -> None: ...


class Headless(msgspec.Struct, kw_only=True):
    """One prompt, one answer.

    `open_session` gives the session, `read_prompt` the prompt and `prepare` what is attached to
    it; all may raise a `TrimtabError`.
    `finishers` run after the run has ended (share, usage file), before the result is shown.
    """

    face: Face
    outputs: tuple[Output, Output]
    clock: Clock
    open_session: Callable[[], Awaitable[LiveSession]]
    read_prompt: Callable[[], Awaitable[str]]
    prepare: Callable[[str], Prompt | str] = lambda text: text
    finishers: list[Callable[[LiveSession, JsonObject], None]] = []
    notices: tuple[tuple[str, str], ...] = ()
    """Remarks (type, sentence) for the start of the session, such as flags without effect."""
    live: LiveSession | None = None
    signalled: Stop | None = None

    async def run(self) -> int:
        """Do it; returns the exit code, which is also the one in the result."""
        task = asyncio.current_task()
        assert task is not None
        self._watch_signals(task)
        try:
            stop = await self._answer()
        except asyncio.CancelledError:
            stop = self.signalled or Stop(reason="aborted", exit_code=130)
        except TrimtabError as error:
            stop = Stop(reason="error", exit_code=error.exit_code, message=error.message)
        except OSError as error:
            stop = Stop(reason="error", exit_code=1, message=describe_os_error(error))
        stop = await self._close(self.signalled or stop)
        self._show_result(stop)
        return await self._drain(stop)

    async def _answer(self) -> Stop:
        prompt = self.prepare(await self.read_prompt())
        self.live = await self.open_session()
        for info_type, message in self.notices:
            self.live.inform(info_type, message)
        return judge(self.live, await self.live.ask(prompt))

    async def _close(self, stop: Stop) -> Stop:
        if self.live is None:
            return stop
        try:
            async with asyncio.timeout(4):
                await self.live.close(error=stop.message if stop.reason == "error" else None)
        except TimeoutError:
            pass  # what is left is killed with this process
        except (TrimtabError, OSError) as error:
            message = error.message if isinstance(error, TrimtabError) else describe_os_error(error)
            return stop if stop.exit_code else Stop(reason="error", exit_code=1, message=message)
        return stop

    def _show_result(self, stop: Stop) -> None:
        result = build_result(self.live, stop, self.clock)
        if self.live is not None:
            for finisher in self.finishers:
                try:
                    finisher(self.live, result)
                except (OSError, TrimtabError) as error:
                    result.setdefault("warnings", []).append(str(error))
        self.face.on_result(result)

    async def _drain(self, stop: Stop) -> int:
        """Wait for whoever reads; one who does not has not got the result, and is not told so."""
        try:
            answer, notes = self.outputs
            written = await answer.drain(PATIENCE)
            await notes.drain(1.0)
        except asyncio.CancelledError:
            return self.signalled.exit_code if self.signalled else 130
        return stop.exit_code if written else CLOSED.exit_code

    def _watch_signals(self, task: "asyncio.Task[object]") -> None:
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            if self.signalled is not None:
                os._exit(128 + number)
            self.signalled = Stop(
                reason="aborted",
                exit_code=128 + number,
                message=f"Stopped by {number.name}; resume the session to go on.",
            )
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, on_signal, number)

    def on_output_closed(self) -> None:
        """Nobody reads any more: end quietly."""
        if self.signalled is None and self.live is not None:
            self.signalled = CLOSED
            self.live.stop(CLOSED)


def judge(live: LiveSession, stop: Stop) -> Stop:
    """A run that ended well but was denied something it never got is not a success.

    A model that says itself that the task is complete is believed, and plan mode is there to deny.
    """
    complete = stop.reason == "task_complete" or live.mode == "plan"
    if complete or stop.exit_code not in (0, 3) or not live.projections.approvals.unresolved:
        return stop
    message = stop.message or describe_denial(live)
    return msgspec.structs.replace(stop, exit_code=4, message=message)


def describe_denial(live: LiveSession) -> str:
    """Say what to do about a denial: no flag helps where a hook said no."""
    reason = str(live.projections.approvals.denials[-1].get("reason") or "")
    if not reason.startswith(BY_HOOK):
        return DENIED
    said = reason.removeprefix(BY_HOOK).rstrip(".")
    return f"A hook denied a call and the work is incomplete ({said}); see `trimtab hooks list`."


def describe_os_error(error: OSError) -> str:
    """An operating-system error as a sentence that says what to do."""
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; free or fix it and run again."
