"""Runs one prompt without a terminal, and ends with exactly one result on every path."""

import asyncio
import errno
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trimtab.contracts.cancellation import end_cancellation
from trimtab.contracts.errors import ExitCode, TrimtabError, UsageError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Mode, Prompt
from trimtab.host.requests import handle_request
from trimtab.runtime.live import LiveSession
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.result import Clock, build_result

DENIED = (
    "A permission was denied and the work is incomplete; allow it, for example with "
    "--allow-all-tools, and resume the session."
)
BY_HOOK = "Denied by preToolUse hook: "
WAIT_VARIABLE = "COPILOT_TASK_WAIT_TIMEOUT_SECONDS"
WAIT_SECONDS = 600
STALL_TIMEOUT = 60.0
"""Seconds for which a reader may take nothing, as a person in a pager does."""
CLOSED = Stop(
    reason="aborted", exit_code=ExitCode.BROKEN_PIPE, message="The reader of the output is gone."
)


class Face(Protocol):
    """Shows a run, as lines of JSON or as text."""

    def on_event(self, event: Event, line: bytes) -> None: ...

    def on_result(self, result: JsonObject) -> None: ...


class Headless(msgspec.Struct, kw_only=True):
    """A run with one prompt.

    `open_session`, `read_prompt` and `prepare`, which adds attachments, may raise a
    `TrimtabError`. `finishers` write files, such as `--share`, before the result is shown.
    """

    face: Face
    outputs: tuple[Output, Output]
    clock: Clock
    open_session: Callable[[], Awaitable[LiveSession]]
    read_prompt: Callable[[], Awaitable[str]]
    prepare: Callable[[str], Prompt | str] = lambda text: text
    finishers: list[Callable[[LiveSession, JsonObject], None]] = []
    notices: tuple[tuple[str, str], ...] = ()
    """Infos (type, message) for the start of the session, such as flags without effect."""
    mode_after_plan: Mode | None = None
    """The mode in which the plan is carried out, if the run begins with one."""
    live: LiveSession | None = None
    signalled: Stop | None = None

    async def run(self) -> int:
        """Run the prompt; return the exit code, which the result contains, too."""
        task = asyncio.current_task()
        assert task is not None
        self._watch_signals(task)
        try:
            stop = await self._answer()
        except asyncio.CancelledError:
            end_cancellation()
            stop = self.signalled or Stop(reason="aborted", exit_code=ExitCode.INTERRUPTED)
        except TrimtabError as error:
            stop = Stop(reason="error", exit_code=error.exit_code, message=error.message)
        except OSError as error:
            stop = Stop(
                reason="error", exit_code=ExitCode.FAILURE, message=describe_os_error(error)
            )
        stop = await self._close(self.signalled or stop)
        self._show_result(stop)
        return await self._drain(stop)

    async def _answer(self) -> Stop:
        prompt = self.prepare(await self.read_prompt())
        self.live = await self.open_session()
        for info_type, message in self.notices:
            self.live.inform(info_type, message)
        wait = find_wait(self.live)
        handle_request(self.live, prompt)
        stop = await self.live.settled(wait)
        if self.mode_after_plan and not stop.exit_code and self.live.mode == "plan":
            from trimtab.host.plan_approval import carry_out_plan

            await carry_out_plan(self.live, self.mode_after_plan)
            stop = await self.live.settled(wait)
        return apply_denials(self.live, stop)

    async def _close(self, stop: Stop) -> Stop:
        if self.live is None:
            return stop
        try:
            async with asyncio.timeout(4):
                await self.live.close(error=stop.message if stop.reason == "error" else None)
        except TimeoutError:
            pass  # processes that are left are killed with this one
        except (TrimtabError, OSError) as error:
            message = error.message if isinstance(error, TrimtabError) else describe_os_error(error)
            return (
                stop
                if stop.exit_code
                else Stop(reason="error", exit_code=ExitCode.FAILURE, message=message)
            )
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
        """Wait for the reader; return the exit code for a closed output if it takes nothing."""
        try:
            answer, notes = self.outputs
            written = await answer.drain(STALL_TIMEOUT)
            await notes.drain(1.0)
        except asyncio.CancelledError:
            return self.signalled.exit_code if self.signalled else ExitCode.INTERRUPTED
        return stop.exit_code if written else describe_closed(answer).exit_code

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
        """Stop the run because nobody reads its output."""
        if self.signalled is None and self.live is not None:
            self.signalled = describe_closed(self.outputs[0])
            self.live.stop(self.signalled)


def describe_closed(output: Output) -> Stop:
    """Return the end of a run whose output cannot be written."""
    error = output.failure
    if error is None or error.errno in (errno.EPIPE, errno.EBADF):
        return CLOSED
    message = f"Standard output cannot be written: {error.strerror}; fix that and run again."
    return Stop(reason="error", exit_code=ExitCode.FAILURE, message=message)


def find_wait(live: LiveSession) -> float:
    """Return how many seconds to wait for work in the background. Raises `UsageError`."""
    text = live.controls.setup.env.get(WAIT_VARIABLE) or str(WAIT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"{WAIT_VARIABLE} is {text!r}; set it to a number of seconds.")
    return seconds


def apply_denials(live: LiveSession, stop: Stop) -> Stop:
    """Change success to exit code 4 if a permission was denied and never granted.

    A model that declares the task complete is believed; in plan mode denials are expected.
    """
    complete = stop.reason == "task_complete" or live.mode == "plan"
    if (
        complete
        or stop.exit_code not in (ExitCode.SUCCESS, ExitCode.INCOMPLETE)
        or not live.projections.approvals.unresolved
    ):
        return stop
    message = stop.message or describe_denial(live)
    return msgspec.structs.replace(stop, exit_code=ExitCode.DENIED, message=message)


def describe_denial(live: LiveSession) -> str:
    """Return what to do about a denial. No flag overrules a hook."""
    reason = str(live.projections.approvals.denials[-1].get("reason") or "")
    if not reason.startswith(BY_HOOK):
        return DENIED
    cause = reason.removeprefix(BY_HOOK).rstrip(".")
    return f"A hook denied a call and the work is incomplete ({cause}); see `trimtab hooks list`."


def describe_os_error(error: OSError) -> str:
    """Return an operating-system error as a sentence that says what to do."""
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}; fix that and run again."
