"""Answers a prompt with a runtime: starts it, follows its lines, decides its calls, ends it."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.bridge.run import command_environment
from trimtab.bridge.server import Bridge
from trimtab.contracts.errors import ExitCode, UsageError
from trimtab.contracts.events.own import (
    RuntimeEnded,
    RuntimeEvent,
    RuntimeSession,
    RuntimeStarted,
)
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult
from trimtab.runtimes.contract import (
    AgentRuntime,
    Asked,
    Binary,
    CallBegan,
    CallEnded,
    Ended,
    Endpoint,
    Item,
    Job,
    ModelNamed,
    ModelSource,
    Permit,
    Remark,
    RuntimeSettings,
    SessionOpened,
    TurnBegan,
)
from trimtab.runtimes.failures import build_crash, build_error, classify
from trimtab.runtimes.handover import hand_over
from trimtab.runtimes.judged_call import changes_nothing, describe_args, judge
from trimtab.runtimes.program import RuntimeProgram, read_line
from trimtab.runtimes.session_events import SessionEvents
from trimtab.undo.recorder import Reason, Recorder
from trimtab.workspace.environment import find_keys
from trimtab.workspace.local import LocalWorkspace

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined

_SHORTHANDS = ("sonnet", "opus", "haiku")
_REJECTED = Stop(reason="rejected", message="A tool call was rejected.")


class RuntimeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime of an agent, its program, and whose models it uses."""

    runtime: AgentRuntime
    binary: Binary
    models: ModelSource = "own"
    settings: RuntimeSettings = RuntimeSettings()


class RuntimePorts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a session that an agent of a runtime works with."""

    env: Mapping[str, str]
    workspace: LocalWorkspace
    recorder: Recorder
    guards: Callable[[Run], Sequence[Processor]]
    """Returns the processors that decide about tool calls, in order."""
    check_rules: Callable[[Run], None]
    """Raises `UsageError` if the runtime cannot keep a rule of the session."""
    check_limits: Callable[[Run], Awaitable[Stop | None]]
    """Counts a model call; returns why it may not be made."""
    stop_at_budget: Callable[[Run, str], Stop]
    """Records that the budget does not allow more, and returns the stop of the run."""
    open_bridge: Callable[[Run], AbstractAsyncContextManager[Bridge]]
    confine: Callable[[], "Confined | None"]
    """Returns the sandbox that the program runs in."""
    system: Callable[[], str]
    """Returns the instructions of a custom agent."""
    last_session: Callable[[Run], str | None]
    """Returns the id of the runtime's own session that this agent had before."""
    suggest: Callable[[str], Awaitable[str]]
    """Returns advice about a model that the runtime does not know."""
    folders: Callable[[], tuple[str, ...]]
    secrets: Callable[[], tuple[str, ...]]
    """Returns the names of variables that nobody else may see."""
    max_continues: int | None = None


class RuntimeResponder:
    """An agent whose prompts another program answers. It is called once for each prompt."""

    def __init__(self, choice: RuntimeChoice, ports: RuntimePorts, model: str | None) -> None:
        self.choice = choice
        self._ports = ports
        self.wanted = model
        """The model that was asked for; None leaves it to the runtime."""
        self._named = ""
        """The model as the runtime named it last."""

    async def respond(self, run: Run) -> Stop:
        """Answer the prompt that was recorded last."""
        self._ports.check_rules(run)
        if run.origin.answer_schema is not None:
            raise UsageError(
                f"{self.choice.runtime.title} cannot be kept to a schema of its answer; leave out "
                "the schema or the runtime."
            )
        if (stop := await self._ports.check_limits(run)) is not None:
            return stop
        host = self.choice.models == "host"
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="trimtab-runtime-"))
            bridge = await stack.enter_async_context(self._ports.open_bridge(run)) if host else None
            return await Answer(self, run, self._ports).give(folder, bridge)

    def build_job(self, run: Run, folder: str, bridge: Bridge | None) -> Job:
        ports, runtime = self._ports, self.choice.runtime
        prompt, model = run.prompt, run.agent.model
        if model.name != self._named:
            self.wanted = model.name or None
        self._warn_of_shorthand(run)
        resume = ports.last_session(run) if runtime.capabilities.session_resume else None
        text, handed_over = prompt.transformed or prompt.text, 0
        if resume is None:
            text, handed_over = hand_over(run.session.conversation.messages[:-1], text)
        return Job(
            prompt=text,
            images=self._find_images(run),
            handed_over=handed_over,
            cwd=ports.workspace.root,
            system=ports.system(),
            model=self.wanted,
            effort=model.effort if runtime.capabilities.effort_levels else None,
            resume=resume,
            folders=ports.folders(),
            endpoint=None if bridge is None else Endpoint(url=bridge.url),
            max_continues=ports.max_continues,
            settings=self.choice.settings,
            scratch=folder,
        )

    def _find_images(self, run: Run) -> tuple[tuple[str, str], ...]:
        """Return the images of the prompt; warn if the runtime takes none."""
        images = [
            (str(attachment["mimeType"]), attachment["data"])
            for attachment in run.prompt.attachments
            if str(attachment.get("mimeType")).startswith("image/")
            and isinstance(attachment.get("data"), str)
        ]
        if images and not self.choice.runtime.capabilities.images:
            message = (
                f"{self.choice.runtime.title} takes no images, so those of the prompt are left out."
            )
            run.session.emit(SessionWarning(warning_type="runtime", message=message))
            return ()
        return tuple(images)

    def build_environment(self, job: Job, bridge: Bridge | None) -> dict[str, str]:
        """Return the person's variables, with the keys of this runtime and of no other service."""
        runtime, env = self.choice.runtime, self._ports.env
        if bridge is not None:
            found = command_environment(env, bridge, runtime.program, job.scratch)
        else:
            dropped = {name for name in find_keys(env) if name not in runtime.keys}
            found = {name: value for name, value in env.items() if name not in dropped}
        hidden = {*_NESTED, *self._ports.secrets()}
        found = {name: value for name, value in found.items() if name not in hidden}
        return {**found, **runtime.environment(job), "PWD": job.cwd}

    def name_model(self, run: Run, model: str) -> None:
        """Show the model that the runtime says it uses."""
        self._named = model
        settings = msgspec.structs.replace(run.agent.model, name=model)
        run.agent = msgspec.structs.replace(run.agent, model=settings)

    def _warn_of_shorthand(self, run: Run) -> None:
        """Warn once of names that are models to other runtimes only."""
        runtime, wanted = self.choice.runtime, self.wanted
        key = f"shorthand {wanted}"
        if runtime.capabilities.model_shorthands or wanted not in _SHORTHANDS or key in run.warned:
            return
        run.warned.add(key)
        message = (
            f"{runtime.title} has no short names for models; {wanted} is passed on as it is. "
            "Name the whole id with --model."
        )
        run.session.emit(SessionWarning(warning_type="model_shorthand", message=message))


_NESTED = frozenset(("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "OLDPWD"))
"""Variables by which a program would believe that it runs inside another one."""


class Answer:
    """One run of the program, from its start to its end."""

    def __init__(self, responder: RuntimeResponder, run: Run, ports: RuntimePorts) -> None:
        self._responder = responder
        self._choice = responder.choice
        self._runtime = responder.choice.runtime
        self._run = run
        self._ports = ports
        counts = self._choice.models == "own"
        self._events = SessionEvents(run, self._runtime, counts_tokens=counts)
        self._program: RuntimeProgram
        self._confinement: Confined | None = None
        self._ended: Ended | None = None
        self._stop: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        self._decisions: dict[str, asyncio.Task[Permit]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._calls: dict[str, PendingCall] = {}
        """The calls that run, as hooks and permissions saw them."""
        self._denied: set[str] = set()
        self._turns = 0
        self._reason = Reason("custom-tool", None, self._runtime.title, run.agent.id or None)

    async def give(self, folder: str, bridge: Bridge | None) -> Stop:
        run, choice = self._run, self._choice
        job = self._responder.build_job(run, folder, bridge)
        argv = [*choice.binary.command, *self._runtime.arguments(job)]
        env = self._responder.build_environment(job, bridge)
        self._confinement = self._ports.confine()
        run.session.emit(
            RuntimeStarted(
                runtime=self._runtime.name,
                version=choice.binary.version or None,
                models=choice.models,
                program=choice.binary.bin,
                resumed=job.resume,
                handed_over=job.handed_over or None,
            )
        )
        await run.session.synced()
        recorder = self._ports.recorder
        await recorder.begin(self._reason)
        try:
            self._ports.workspace.shells.guard()
            self._program = RuntimeProgram(
                argv, cwd=job.cwd, env=env, confinement=self._confinement, say=self._remark
            )
            return await self._follow(job, bridge)
        finally:
            await recorder.end(self._reason)

    async def _follow(self, job: Job, bridge: Bridge | None) -> Stop:
        """Follow the program to its end, or until it must stop."""
        program, runtime = self._program, self._runtime
        reading = asyncio.ensure_future(self._read())
        try:
            program.write(runtime.input(job))
            if not runtime.keeps_input_open:
                program.close_input()
            await asyncio.wait((reading, self._stop), return_when=asyncio.FIRST_COMPLETED)
            if self._stop.done():
                return self._stop.result()
            reading.result()
            await program.settle()
            return await self._finish(bridge.journal.refused if bridge else "")
        finally:
            await asyncio.shield(asyncio.ensure_future(self._clean_up(reading)))

    async def _clean_up(self, reading: "asyncio.Future[None]") -> None:
        tasks: list[asyncio.Future[Any]] = [reading, *self._answering, *self._decisions.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._program.end()
        self._events.close()
        ended = self._ended
        self._run.session.emit(
            RuntimeEnded(
                runtime=self._runtime.name,
                success=ended is not None and not ended.error,
                exit_code=self._program.exit_code,
                error=(ended.error or None) if ended else "it ended without a result",
                turns=ended.turns if ended else None,
                duration_ms=ended.duration_ms if ended else None,
                cost_usd=ended.cost_usd if ended else None,
                premium_requests=ended.premium_requests if ended else None,
            )
        )

    async def _read(self) -> None:
        reader, runtime = self._runtime.reader(), self._runtime
        async for line in self._program.lines():
            event = read_line(line)
            known = isinstance(event, dict)
            partial = known and runtime.is_partial(event)
            kept = RuntimeEvent(runtime=runtime.name, event=event)
            self._run.session.emit(kept, ephemeral=True if partial else None)
            for item in reader.read(event) if known else ():
                await self._take(item)
            if self._ended is not None or self._stop.done():
                return
        for item in reader.finish():
            await self._take(item)
        if self._program.dropped:
            self._remark(f"{self._program.dropped} lines were too long and are left out.")

    async def _take(self, item: Item) -> None:
        """Act on one report of the runtime."""
        match item:
            case TurnBegan():
                await self._begin_turn()
            case CallEnded():
                await self._end_call(item)
            case Asked():
                self._answer_later(item)
            case Ended():
                self._ended = item
                self._program.close_input()
            case SessionOpened(id=session_id):
                self._note_session(session_id)
            case ModelNamed(model=model):
                if self._choice.models == "own":  # else the bridge decides, whatever it says
                    self._events.model = model
                    self._responder.name_model(self._run, model)
            case Remark(message=message):
                self._remark(message)
            case CallBegan(call=call):
                self._calls.setdefault(call.id, judge(self._runtime, call))
                self._events.begin_call(item)
            case _:
                self._events.record(item)

    def _note_session(self, session_id: str) -> None:
        if session_id != self._ports.last_session(self._run):
            noted = RuntimeSession(runtime=self._runtime.name, session_id=session_id)
            self._run.session.emit(noted)

    async def _begin_turn(self) -> None:
        """Begin a turn if the limits allow it; the first was allowed before the start."""
        self._turns += 1
        if self._turns > 1 and (stop := await self._ports.check_limits(self._run)) is not None:
            self._halt(stop)
            return
        self._events.begin_turn()

    async def _end_call(self, ended: CallEnded) -> None:
        """Record what a call changed, tell hooks about it, and record its result."""
        run, pending = self._run, self._calls.pop(ended.id, None)
        if pending is None or ended.id in self._denied:
            self._events.end_call(ended, code="denied" if pending is not None else "failure")
            return
        # While a sandbox is open, its placeholders for protected files are in the workspace.
        if self._confinement is None and not changes_nothing(pending.call.name):
            await self._ports.recorder.end(self._reason_of(pending))
        self._check_asked(ended, pending)
        result = ToolResult(text=ended.text, kind="failure" if ended.failed else "success")
        for guard in self._ports.guards(run):
            result = await guard.after_tool(run, pending, result)
        self._events.end_call(ended)
        self._heed_stop()

    def _reason_of(self, pending: PendingCall) -> Reason:
        command = describe_args(pending.args)
        kind, agent = "shell" if command else "custom-tool", self._run.agent.id or None
        return Reason(kind, pending.call.id, command or pending.call.name, agent)

    def _check_asked(self, ended: CallEnded, pending: PendingCall) -> None:
        """End the run of a program that did not ask as it should: rules might be broken."""
        asks = self._runtime.capabilities.asks_permission
        if asks and not ended.failed and ended.id not in self._decisions:
            message = (
                f"{self._runtime.title} ran {pending.call.name} without asking, so it was stopped; "
                "check whether its settings forbid hooks."
            )
            self._remark(message)
            self._halt(Stop(reason="error", exit_code=ExitCode.DENIED, message=message))

    def _heed_stop(self) -> None:
        """End the run if a hook asked for it."""
        if self._run.stop is not None:
            self._halt(self._run.stop)

    def _answer_later(self, asked: Asked) -> None:
        """Decide about a call while other lines arrive; a call is decided about once."""
        decision = self._decisions.get(asked.call.id)
        if decision is None or not asked.call.id:
            decision = asyncio.ensure_future(self._decide(asked))
            self._decisions[asked.call.id] = decision

        async def answer() -> None:
            permit = await decision
            self._program.write(self._runtime.answer(asked, permit))

        task = asyncio.ensure_future(answer())
        self._answering.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        self._answering.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._stop.done():
            self._stop.set_exception(error)

    async def _decide(self, asked: Asked) -> Permit:
        """Let hooks and permissions decide, as they do about calls of our own tools."""
        run, pending = self._run, judge(self._runtime, asked.call)
        self._events.begin_call(CallBegan(call=asked.call, parent=asked.parent))
        for guard in self._ports.guards(run):
            verdict = await guard.before_tool(run, pending)
            if isinstance(verdict, ToolResult):
                self._denied.add(asked.call.id)
                if verdict.kind == "rejected":
                    self._halt(_REJECTED)
                self._heed_stop()
                return Permit(allowed=False, reason=verdict.text)
            pending = verdict
        if self._stop.done():
            return Permit(allowed=False, reason="The run has ended.")
        await run.session.synced()
        self._calls[asked.call.id] = pending
        return Permit(allowed=True, args=self._runtime.restore(asked.call.name, pending.args))

    def _halt(self, stop: Stop) -> None:
        if not self._stop.done():
            self._stop.set_result(stop)

    async def _finish(self, refused: str) -> Stop:
        """Return the end of the run, or raise why it failed.

        `refused` is the limit at which a model call was refused.
        """
        ended, program = self._ended, self._program
        if ended is not None and not ended.error:
            return Stop(reason="end_turn")
        if refused:
            return self._ports.stop_at_budget(self._run, refused)
        if ended is None:
            raise build_crash(self._runtime, program.exit_code, program.errors)
        advice = ""
        if classify(ended.error, ended.status) == "not_found":
            advice = await self._ports.suggest(self._responder.wanted or "")
        raise build_error(self._runtime, ended, advice)

    def _remark(self, message: str) -> None:
        text = f"{self._runtime.title}: {message.strip()}"
        self._run.session.emit(SessionWarning(warning_type="runtime", message=text[:2000]))
