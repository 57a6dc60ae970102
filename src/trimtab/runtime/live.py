"""An open session: the handle by which transports send prompts, receive events and stop runs."""

import asyncio
import errno
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from trimtab.agents.questions import Questions
from trimtab.contracts.cancellation import end_cancellation
from trimtab.contracts.errors import ExitCode, ModelError, TrimtabError, UsageError
from trimtab.contracts.events.assistant import Abort
from trimtab.contracts.events.envelope import Event, EventData, JsonObject, Subscriber
from trimtab.contracts.events.own import Suspended
from trimtab.contracts.events.session import (
    SessionError,
    SessionIdle,
    SessionInfo,
    SessionShutdown,
    SessionWarning,
)
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import INTERRUPTED, AssistantMessage
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Measured, Mode, Prompt, Run
from trimtab.contracts.tool import ToolResult
from trimtab.contracts.workspace import ShellInfo
from trimtab.loop.drain import drain
from trimtab.loop.execute import record
from trimtab.loop.idle import settle
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.controls import Controls
from trimtab.session.folder import SessionFolder
from trimtab.session.inbox import Inbox
from trimtab.session.records import read_records
from trimtab.session.session import Projections, Session
from trimtab.undo.recorder import Recorder

if TYPE_CHECKING:
    from trimtab.loop.compact import Outcome
    from trimtab.loop.time_limit import TimeLimit
    from trimtab.runtime.tasks import SessionTasks
    from trimtab.undo.history import FileHistory
    from trimtab.undo.rewind import Mode as RewindMode
    from trimtab.undo.rewind import Point, Rewound

ABORTED = Stop(reason="aborted", exit_code=ExitCode.INTERRUPTED, message="The run was aborted.")


class LiveSession:
    """An open session. `Runtime` creates it; close it to unlock its folder.

    A drain runs while prompts wait. `send` starts one if none runs; `finished` waits for it.
    """

    def __init__(
        self,
        folder: SessionFolder,
        session: Session,
        run: Run,
        controls: Controls,
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self.folder = folder
        self.controls = controls
        self._session = session
        self._run = run
        self._release = release
        self._task: asyncio.Task[Stop] | None = None
        self._requested_stop: Stop | None = None
        self._last_stop = Stop(reason="end_turn")
        self._timers: list[asyncio.TimerHandle] = []
        self.started = time.time()
        self._closed = False
        self._expired: Stop | None = None
        self._tasks: SessionTasks | None = None
        self._watching = self._idle_deferred = False
        controls.send = self.send
        self._on_close: list[Callable[[], None]] = []
        self.questions = Questions()
        """The questions that wait for an answer, from wherever it comes."""
        self.host: object | None = None
        """Shares the session between clients, if its transport has them share it."""
        self.jobs: dict[str, asyncio.Task[None]] = {}
        """Work beside the run by name, such as a fleet; it ends with the session."""
        self.start_fleet: Callable[[LiveSession, Prompt], Awaitable[str]] | None = None
        """Starts a fleet for a goal, if the process that hosts the session can."""
        self.schedules: object | None = None
        """The prompts that the session is sent at certain times, once there are any."""
        self.schedule: Callable[[LiveSession, str, str], str] | None = None
        """Runs `/every` and `/after`, if the process that hosts the session can."""
        self.client_commands: Callable[[], Collection[str]] = tuple
        """Returns the names of the slash commands that clients handle."""

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def inbox(self) -> Inbox:
        inbox = self._run.inbox
        assert isinstance(inbox, Inbox)
        return inbox

    @property
    def projections(self) -> Projections:
        """The state of the session, folded from its events."""
        return self._session.projections

    @property
    def model(self) -> str:
        return self._run.agent.model.name

    @property
    def mode(self) -> Mode:
        return self._run.agent.mode

    @property
    def context(self) -> tuple[Measured | None, int]:
        """The size of the last request, if there was one, and the token limit of a request."""
        return self._run.measured, self._run.agent.model.prompt_limit or DEFAULT

    @property
    def answer(self) -> str:
        """The text of the model's last message; empty if there is none."""
        messages = reversed(self.projections.conversation.messages)
        return next(
            (message.text for message in messages if isinstance(message, AssistantMessage)), ""
        )

    def has_feature(self, name: str) -> bool:
        """Return True if a feature flag is on. A session without customizations has all."""
        custom = self.controls.setup.customizations
        return custom is None or name in custom.features

    @property
    def may_use_autopilot(self) -> bool:
        custom = self.controls.setup.customizations
        return custom is None or "AUTOPILOT_MODE" not in custom.refused_features

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def tasks(self) -> "SessionTasks":
        """The sub-agents and background commands of the session."""
        if self._tasks is None:
            from trimtab.runtime.tasks import SessionTasks

            self._tasks = SessionTasks(self, self._run)
        return self._tasks

    @property
    def has_background_work(self) -> bool:
        """True if a sub-agent, an attached command or a job works in the background."""
        if self.jobs:
            return True
        if self.controls.has_agents and not self.controls.pool.is_quiet:
            return True
        return bool(self.background_commands)

    @property
    def background_commands(self) -> list[ShellInfo]:
        """The commands that run in the background and end with the session."""
        return [
            shell
            for shell in self.controls.setup.workspace.shells.list()
            if shell.exit_code is None and not shell.foreground and shell.mode != "detached"
        ]

    def add_job(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Do some work beside the run."""
        task = asyncio.get_running_loop().create_task(work)
        self.jobs[name] = task
        self._run.tasks.add(task)

        def end(_: asyncio.Task[None]) -> None:
            self.jobs.pop(name, None)
            self._run.tasks.discard(task)
            self.controls.pool.wake_waiters()

        task.add_done_callback(end)

    async def request_fleet(self, goal: str) -> str:
        """Start a fleet for a goal, or for the todos of the session; return a sentence about it.

        Raises `UsageError`, also where nobody would see how it ends.
        """
        if self.start_fleet is None or not (self.host or self.controls.attended):
            raise UsageError("/fleet works in a conversation; otherwise use -p GOAL --fleet.")
        return await self.start_fleet(self, Prompt(text=goal))

    async def request_schedule(self, command: str, arguments: str) -> str:
        """Run `/every` or `/after`; return a sentence about it. Raises `UsageError`."""
        if self.schedule is None or not (self.host or self.controls.attended):
            raise UsageError(
                f"/{command} works in a conversation; otherwise let cron call `trimtab -p PROMPT`."
            )
        return self.schedule(self, command, arguments)

    def require_quiet(self) -> None:
        """Raise `UsageError` while sub-agents work; forget what they knew of the log."""
        if not self.controls.has_agents:
            return
        if not self.controls.pool.is_quiet:
            raise UsageError("Agents are working in the background; stop them first (see /tasks).")
        self.controls.pool.forget()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event from now on; return an unsubscribe function."""
        return self._session.subscribe(subscriber)

    def send(self, prompt: Prompt | str) -> str:
        """Write a prompt to the log, start a run if none is active, and return the prompt's id."""
        if isinstance(prompt, str):
            prompt = Prompt(text=prompt)
        if prompt.mode == "immediate" and not self.busy:
            prompt = msgspec.structs.replace(prompt, mode="enqueue")  # there is nothing to steer
        message_id = self.inbox.put(prompt)
        self.wake()
        return message_id

    def wake(self) -> None:
        """Start a run if prompts can be answered and none is active."""
        if self.inbox.ready:
            self._wake()

    def _wake(self) -> None:
        if not self.busy:
            self._requested_stop = None  # a drain that was cancelled before its first step left it
            self._task = asyncio.get_running_loop().create_task(self._drain())

    def emit(self, data: EventData, *, ephemeral: bool | None = None) -> Event:
        """Append an event that did not come from the run."""
        return self._session.emit(data, ephemeral=ephemeral)

    def read_events(self) -> list[msgspec.Raw]:
        """Return all stored events as the exact bytes of their lines."""
        return [msgspec.Raw(record.line) for record in read_records(self._session.log.path)]

    @property
    def event_count(self) -> int:
        return self._session.log.count

    @property
    def log_size(self) -> int:
        """The size of the log in bytes."""
        return self._session.log.size

    async def synced(self) -> None:
        """Wait until all events so far are on the disk."""
        await self._session.synced()

    def truncate(self, event_id: str) -> int:
        """Remove an event and all later ones; return how many. Only while nothing runs."""
        self.require_quiet()
        removed = self._session.truncate(event_id)
        self.controls.refresh()
        return removed

    async def compact(self, instructions: str = "") -> "Outcome":
        """Summarise the conversation now. Only while nothing runs."""
        if self.busy:
            raise UsageError("The agent is working; abort the run before you compact the history.")
        return await self.controls.agent.parts.compaction.compact(self._run, "manual", instructions)

    async def add_message(self, prompt: Prompt) -> str:
        """Add a message that the next prompt answers too; return its id. Only while nothing runs.

        Hooks see it like any prompt; an empty id means that one of them took it.
        """
        from trimtab.loop.drain import admit
        from trimtab.loop.prompt import record_prompt

        prompt = msgspec.structs.replace(prompt, id=prompt.id or new_id())
        await self.controls.announce()
        admitted = await admit(self._run, prompt)
        if admitted is None:
            return ""
        record_prompt(self._run, admitted, delivery="idle")
        return prompt.id

    def send_to_background(self) -> int:
        """Let the agent go on beside the commands it waits for; return how many there are."""
        return len(self.controls.setup.workspace.shells.send_to_background())

    @property
    def recorder(self) -> Recorder:
        return self.controls.agent.parts.recorder

    @property
    def history(self) -> "FileHistory":
        """The session's file changes, for undo and redo. Only while nothing runs."""
        from trimtab.undo.history import FileHistory

        return FileHistory(self.folder, self.recorder.store, self.recorder.record)

    def rewind(self, point: "Point", mode: "RewindMode") -> "Rewound":
        """Return to the state before a turn. Only while nothing runs."""
        from trimtab.undo.rewind import rewind

        self.require_quiet()
        rewound = rewind(self._session, self.history, self.recorder.record, (point, mode))
        self.controls.refresh()
        return rewound

    async def set_folder(self, cwd: str) -> None:
        """Work in another folder from the next prompt on. Only while nothing runs."""
        if self.busy:
            raise UsageError(
                "The agent is working; abort the run before you change the working directory."
            )
        self.require_quiet()
        await self.controls.set_folder(cwd)

    async def run_command(self, text: str) -> str | None:
        """Run a slash command and return its output; None if the text is a prompt."""
        from trimtab.commands.table import answer_command

        return await answer_command(self, self._run, text)

    async def expand_command(self, text: str) -> str | None:
        """Return the prompt that a slash command or `/SERVER:PROMPT` stands for; None if none."""
        from trimtab.commands.table import expand_command

        prompt = await self.controls.servers.expand_prompt(text)
        return expand_command(self, text) if prompt is None else prompt

    async def ask_aside(self, question: str) -> str:
        """Return the model's answer to a question that does not enter the conversation."""
        from trimtab.loop.aside import ask_aside

        return await ask_aside(self._run, question, self.projections.conversation.open_calls)

    def check_command(self, text: str) -> None:
        """Raise `UsageError` if the text is an unknown slash command, or one that cannot wait."""
        if not text.startswith("/"):
            return
        from trimtab.commands.table import find_command

        found = find_command(self, text)
        if found is not None and self.busy and not self.has_feature("QUEUED_COMMANDS"):
            raise UsageError(
                f"/{found[0].name} cannot wait, because the feature QUEUED_COMMANDS is off; type "
                "it again when the agent is done."
            )

    def model_metrics(self) -> JsonObject:
        """Return requests and tokens by model, as the protocol reports them."""
        return self.projections.usage.metrics()

    def on_close(self, call: Callable[[], None]) -> None:
        """Call a function when the session is closed, after its last event."""
        self._on_close.append(call)

    def warn(self, warning_type: str, message: str) -> None:
        """Emit a `session.warning` event."""
        self._session.emit(SessionWarning(warning_type=warning_type, message=message))

    def hide(self, values: Sequence[str]) -> None:
        """Mask these values in all events from now on."""
        if self._session.mask is not None:
            self._session.mask.add(values)

    def inform(self, info_type: str, message: str) -> None:
        """Emit a `session.info` event."""
        self._session.emit(SessionInfo(info_type=info_type, message=message))

    async def finished(self) -> Stop:
        """Wait until no prompt is left to answer; return why the last run ended."""
        while self._task is not None:
            task = self._task
            await asyncio.wait((task,))
            if task is self._task:
                self._task = None
        return self._last_stop

    async def settled(self, seconds: float) -> Stop:
        """Wait until nothing works any more, in the background either; return why it ended.

        Work in the background is waited for at most so long in total. Sub-agents that still work
        then are stopped, and the run counts as incomplete.
        """
        stop = await self.finished()
        while not stop.exit_code and self.has_background_work and self._expired is None:
            started = time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, seconds)):
                    await self.tasks.wait_change()
            except TimeoutError:
                return await self.tasks.give_up(stop)
            seconds -= time.monotonic() - started
            stop = await self.finished()
        return stop if stop.exit_code or self._expired is None else self._expired

    async def ask(self, prompt: Prompt | str) -> Stop:
        """Send a prompt and wait until it is answered."""
        self.send(prompt)
        return await self.finished()

    def stop(self, stop: Stop = ABORTED) -> None:
        """Cancel the run. Queued prompts stay queued; open tool calls end as interrupted."""
        if self._task is not None and not self._task.done():
            self._requested_stop = self._requested_stop or stop
            self._task.cancel()

    async def abort(self, stop: Stop = ABORTED) -> None:
        """Cancel the run and wait until it has ended."""
        self.stop(stop)
        if self._task is not None:
            await asyncio.wait((self._task,))

    def keep_deadline(self, limit: "TimeLimit") -> None:
        """End commands and sub-agents in time for last words, and everything at the deadline."""
        from trimtab.loop.processors.deadline import end_at

        loop, stop = asyncio.get_running_loop(), end_at(limit.seconds)
        early = max(0.0, limit.left - limit.last_words)
        self._timers = [
            loop.call_later(early, self._end_commands, stop),
            loop.call_later(limit.left, self._expire, stop),
        ]

    def _end_commands(self, stop: Stop) -> None:
        """End the commands and sub-agents that run, so that the main agent can sum up."""

        async def end() -> None:
            shells = self.controls.setup.workspace.shells
            running = [shell for shell in shells.list() if shell.exit_code is None]
            if self.controls.has_agents and not self.controls.pool.is_quiet:
                self._expired = stop
                await self.controls.pool.stop_all()
            attached = [shell.shell_id for shell in running if shell.mode != "detached"]
            await asyncio.gather(*map(shells.end, attached), return_exceptions=True)

        task = asyncio.get_running_loop().create_task(end())
        self._run.tasks.add(task)
        task.add_done_callback(self._run.tasks.discard)

    def _expire(self, stop: Stop) -> None:
        self._expired = stop
        self.stop(stop)
        if self.controls.has_agents:
            self.controls.pool.wake_waiters()

    async def close(self, error: str | None = None) -> None:
        """Cancel the run, record the shutdown, release the folder. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await self.abort()
        for timer in self._timers:
            timer.cancel()
        for task in (background := set(self._run.tasks)):
            task.cancel()
        if background:
            await asyncio.wait(background)
        try:
            await self._release()
            self._session.emit(self._shutdown(error))
            self.recorder.close()
        finally:
            for call in self._on_close:
                call()
            self._session.close()

    async def suspend(self, waiting: Sequence[str]) -> None:
        """Close the session and keep these tool calls open, to be resumed later."""
        if self._closed:
            return
        if waiting:
            self._session.emit(Suspended(tool_call_ids=list(waiting)))
            self._run.suspended = True
        await self.close()

    def resume_calls(self, waiting: Collection[str]) -> int:
        """Run the tool calls that waited when the session was suspended; return how many.

        Calls that were already running may have had effects: they are recorded as interrupted.
        """
        calls = self.projections.conversation.open_tool_calls
        resumed = tuple(call for call in calls if call.id in waiting)
        if not resumed:
            return 0
        for call in calls:
            if call.id not in waiting:
                interrupted = ToolResult(text=INTERRUPTED, kind="failure")
                record(self._run, call, interrupted, code="interrupted")
        self._run.pending_calls = resumed
        self._wake()
        return len(resumed)

    async def _drain(self) -> Stop:
        """Answer the queued prompts, and those that arrive while the end is being recorded."""
        stop = await self._drain_once()
        while not stop.exit_code and self.inbox.ready:
            stop = await self._drain_once()
        return stop

    async def _drain_once(self) -> Stop:
        try:
            await self.controls.announce()
            stop = await drain(self._run)
        except asyncio.CancelledError:
            end_cancellation()
            stop = self._requested_stop or ABORTED
            self._requested_stop = None
            self._record_interruption(stop)
            await settle(self._run, stop, aborted=True)
        except TrimtabError as error:
            stop = Stop(reason="error", exit_code=error.exit_code, message=error.message)
            with suppress(TrimtabError):  # the error may be that the log cannot be written
                self._record_error(error)
                await settle(self._run, stop)
        except Exception as error:  # a bug: the person sees a sentence, the log has the traceback
            stop = Stop(reason="error", exit_code=ExitCode.FAILURE, message=_describe(error))
            with suppress(TrimtabError):
                self._record_bug(error)
                await settle(self._run, stop)
        self._last_stop = stop
        self._watch_background()
        return stop

    def _watch_background(self) -> None:
        """Announce that the session is idle once nothing works in the background any more."""
        self._idle_deferred = self.has_background_work
        if self._closed or self._watching or not self._idle_deferred:
            return

        async def watch() -> None:
            while self.has_background_work:
                await self.tasks.wait_change()
            if self._idle_deferred and not self.busy and not self.inbox.ready:
                self._idle_deferred = False
                self._session.emit(SessionIdle(mode=self._run.agent.mode))

        def end(_: asyncio.Task[None]) -> None:
            self._watching = False
            self._run.tasks.discard(task)

        self._watching = True
        task = asyncio.get_running_loop().create_task(watch())
        self._run.tasks.add(task)
        task.add_done_callback(end)

    def _record_interruption(self, stop: Stop) -> None:
        if stop.reason == "aborted":
            self._session.emit(Abort(reason="user_initiated"))
        else:
            self._session.emit(SessionWarning(warning_type=stop.reason, message=stop.message))

    def _record_error(self, error: TrimtabError) -> None:
        details: JsonObject = {}
        if isinstance(error, ModelError):
            if error.reported:
                return
            details = {"status_code": error.status, "error_code": error.code}
        self._session.emit(
            SessionError(error_type=error.error_type, message=error.message, **details)
        )

    def _record_bug(self, error: Exception) -> None:
        stack = "".join(traceback.format_exception(error))
        self._session.emit(
            SessionError(error_type="internal", message=_describe(error), stack=stack)
        )

    def _shutdown(self, error: str | None) -> SessionShutdown:
        usage, changes = self.projections.usage, self.projections.changes
        return SessionShutdown(
            shutdown_type="error" if error else "routine",
            error_reason=error,
            total_premium_requests=usage.premium_requests,
            total_api_duration_ms=usage.api_duration_ms,
            session_start_time=int(self.started * 1000),
            code_changes={
                "linesAdded": changes.lines_added,
                "linesRemoved": changes.lines_removed,
                "filesModified": changes.files,
            },
            model_metrics=self.model_metrics(),
            agent_metrics=usage.agent_metrics() or None,
            current_model=self.model,
            current_tokens=usage.last_input_tokens,
            events_file_size_bytes=self._session.log.size,
        )


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{error.strerror}; raise the limit (ulimit -n) and run again."
    return (
        f"Internal error ({type(error).__name__}: {error}); please report it with the session log."
    )
