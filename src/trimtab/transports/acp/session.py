"""A session as one editor sees it: its updates, its questions and its turns."""

import asyncio
from collections.abc import Callable, Sequence

from trimtab.contracts.cancellation import end_cancellation
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.options import Client
from trimtab.contracts.permission import Answer
from trimtab.contracts.processor import Stop
from trimtab.contracts.questions import Form, PlanReady, PlanVerdict, Question, Response
from trimtab.contracts.run import Prompt
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import ModeInUse, ModelInUse, Part, ReplyEnded, TodosChanged, ToolInvocation
from trimtab.host.parts import Question as QuestionPart
from trimtab.host.person_questions import present_question
from trimtab.host.plan_approval import present_plan
from trimtab.host.requests import handle_request
from trimtab.runtime.live import LiveSession
from trimtab.session.todos import read_todos
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.editor import Buffers, Terminals
from trimtab.transports.acp.forms import ask_question, show_form
from trimtab.transports.acp.protocol import FAILED, INVALID_PARAMS, AcpError
from trimtab.transports.acp.questions import PermissionDesk, describe_request
from trimtab.transports.acp.schema import ClientCapabilities
from trimtab.transports.acp.updates import ShownCall, UpdateBuilder, chunk

OUTPUT_INTERVAL = 0.05
"""Seconds between two updates with the output of a running call, each of which repeats it."""

STOP_REASONS = {
    "aborted": "cancelled",
    "turn_limit": "max_turn_requests",
    "continuation_cap": "max_turn_requests",
    "no_progress": "max_turn_requests",
    "agent_stop_block_limit": "max_turn_requests",
    "deadline": "max_turn_requests",
    "budget": "max_tokens",
}
"""The protocol's stop reason for the reason a run ended; every other is `end_turn`."""
FINISH_REASONS = {"length": "max_tokens", "content_filter": "refusal", "refusal": "refusal"}
"""The stop reason of a run that ended with a reply the service cut short."""


class Turn:
    """A prompt that is being answered, or waits for the one before it."""

    def __init__(self) -> None:
        self.cancelled = False


class EditorSession:
    """A live session and its client.

    Updates are held until the client knows the session; then they are sent as events arrive.
    """

    def __init__(
        self,
        connection: Connection,
        capabilities: ClientCapabilities,
        observe: Callable[[Event, bytes], None] | None = None,
        *,
        may_ask: bool = True,
    ) -> None:
        self._connection = connection
        self.capabilities = capabilities
        self._observe = observe
        self._may_ask = may_ask
        self._fold = PartFold()
        self._builder = UpdateBuilder(capabilities, "", self._read_blob)
        self._held: list[JsonObject] | None = []
        self._live: LiveSession | None = None
        self._desk: PermissionDesk | None = None
        self._asked: dict[str, str | None] = {}
        """The agent of each open permission question, by request id."""
        self._turns: list[Turn] = []
        self._turn_lock = asyncio.Lock()
        self._finish_reason = ""
        self._title = ""
        self._warned = ""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.on_settings_changed: Callable[[], None] = lambda: None
        """Called when the mode, model or another option has changed, whoever changed it."""

    @property
    def live(self) -> LiveSession:
        assert self._live is not None
        return self._live

    @property
    def id(self) -> str:
        return self.live.id

    def as_client(self) -> Client:
        """Return the `Client` that the runtime tells, and asks unless `--no-ask-user` is given."""
        if not self._may_ask:
            return Client(on_event=self._on_event, attended=True)
        return Client(
            on_event=self._on_event,
            ask=self._ask_permission,
            attended=True,
            ask_person=self._ask_person if self.capabilities.forms else None,
            ask_form=self._ask_form if self.capabilities.elicitation else None,
            ask_approval=self._ask_approval,
        )

    def attach(self, live: LiveSession) -> None:
        """Set the session, and give it the tools that need this client."""
        self._live = live
        self._builder.set_cwd(live.controls.options.cwd)
        self._builder.cost = lambda: live.projections.usage.total.cost_usd
        self._desk = PermissionDesk(self._connection, live.id)
        self._title = live.projections.title.text
        if self._may_ask:
            forms = {"ask_user"} if self.capabilities.forms else set()
            live.controls.set_tools((), {"exit_plan_mode", *forms})
        self._lend_editor(live)

    def _lend_editor(self, live: LiveSession) -> None:
        """Have the session use what the client offers of its own: files and terminals."""
        support, buffers, terminals = self.capabilities.fs, None, None
        if support.read_text_file or support.write_text_file:

            def warn(message: str) -> None:
                live.emit(SessionWarning(warning_type="editor_silent", message=message))

            options = live.controls.options
            roots = (options.cwd, *options.permissions.add_dirs)
            buffers = Buffers(self._connection, live.id, support, roots)
            buffers.warn = warn
        if self.capabilities.terminal:
            terminals = Terminals(self._connection, live.id, self._show_terminal)
        live.controls.use_editor(buffers, terminals)

    def _show_terminal(self, call_id: str, terminal_id: str) -> None:
        for update in self._builder.add_terminal(call_id, terminal_id):
            self.send(update)

    def release(self) -> None:
        """Send the updates that were held, and every later one at once."""
        held, self._held = self._held or [], None
        for update in held:
            self.send(update)

    def send(self, update: JsonObject) -> None:
        if self._held is not None:
            self._held.append(update)
            return
        params = {"sessionId": self.id, "update": update}
        self._connection.notify("session/update", params)

    def replay(self, lines: Sequence[bytes], *, shown: bool) -> None:
        """Fold the stored events of the session; if `shown`, send them before all held updates."""
        updates: list[JsonObject] = []
        for line in lines:
            for part in self._fold.apply(decode(line)):
                updates += self._builder.replay(part)
        updates += self._builder.end_open_calls()
        if not shown:
            return
        if self._title:
            updates.append({"sessionUpdate": "session_info_update", "title": self._title})
        if entries := self._list_todos():
            updates.append({"sessionUpdate": "plan", "entries": entries})
        self._held = [*updates, *(self._held or ())]
        self.release()

    async def prompt(self, prompt: Prompt) -> str:
        """Answer a prompt; return the protocol's stop reason. Raises `AcpError`.

        Prompts are answered one after another; cancelling ends the one that runs and drops those
        that wait.
        """
        turn = Turn()
        self._turns.append(turn)
        try:
            async with self._turn_lock:
                reason = "cancelled" if turn.cancelled else await self._answer(prompt)
        except asyncio.CancelledError:
            turn.cancelled = True
            end_cancellation()
        except AcpError:
            if not turn.cancelled:
                raise
        finally:
            self._turns.remove(turn)
        return "cancelled" if turn.cancelled else reason

    def cancel(self) -> None:
        """Cancel the prompt that runs and those that wait."""
        for turn in self._turns:
            turn.cancelled = True
        if self._turns:
            self.live.stop()

    async def close(self) -> None:
        self.cancel()
        for timer in self._timers.values():
            timer.cancel()
        await self.live.close()

    async def _answer(self, prompt: Prompt) -> str:
        live = self.live
        try:
            live.check_command(prompt.text)
        except UsageError as error:
            raise AcpError(INVALID_PARAMS, error.message) from None
        self._finish_reason = self._warned = ""
        message_id = handle_request(live, prompt, mode="enqueue").id
        try:
            stop = await live.finished()
        except asyncio.CancelledError:
            await live.abort()
            raise
        finally:
            live.inbox.withdraw(message_id, "cancelled")
        return self._report(stop)

    def _report(self, stop: Stop) -> str:
        """Return the stop reason; a failed run raises in the words of what failed."""
        if (usage := self._builder.build_final_usage()) is not None:
            self.send(usage)
        if stop.reason == "error":
            if FINISH_REASONS.get(self._finish_reason) == "refusal":
                return "refusal"
            raise AcpError(FAILED, stop.message)
        reason = STOP_REASONS.get(stop.reason)
        if reason is None:
            return FINISH_REASONS.get(self._finish_reason, "end_turn")
        if stop.reason != "aborted" and stop.message and stop.message != self._warned:
            self.send(chunk("agent_message_chunk", stop.message, f"stop {self.live.event_count}"))
        return reason

    def _on_event(self, event: Event, line: bytes) -> None:
        if self._observe is not None:
            self._observe(event, line)
        for part in self._fold.apply(event):
            self._on_part(part)
        if isinstance(event.data, UserMessage) and self._live is not None:
            title = self._live.projections.title.text
            if title and title != self._title:
                self._title = title
                self.send({"sessionUpdate": "session_info_update", "title": title})

    def _on_part(self, part: Part) -> None:
        match part:
            case ReplyEnded() if part.agent_id is None:
                self._finish_reason = part.finish_reason
            case ModeInUse() | ModelInUse() if part.agent_id is None:
                self.on_settings_changed()
            case TodosChanged():
                self.send({"sessionUpdate": "plan", "entries": self._list_todos()})
            case QuestionPart(kind="permission") if not part.done:
                self._asked[part.request_id] = part.agent_id
            case ToolInvocation() if part.delta:
                self._schedule_output(part)
        for update in self._builder.build(part):
            self.send(update)
            if update["sessionUpdate"] == "notice":
                self._warned = str(update["title"])

    def _list_todos(self) -> list[JsonObject]:
        """Return the whole to-do list as entries of a plan."""
        if self._live is None:
            return []
        todos, _ = read_todos(self._live.folder.database)
        return [
            {
                "content": str(todo.get("title") or todo.get("description") or todo.get("id")),
                "priority": "medium",
                "status": PLAN_STATES.get(str(todo.get("status")), "pending"),
            }
            for todo in todos
        ]

    def _schedule_output(self, call: ToolInvocation) -> None:
        """Send the output of a call soon, unless that is about to happen."""
        if call.key in self._timers:
            return

        def send() -> None:
            self._timers.pop(call.key, None)
            shown = self._builder.find_call(call.agent_id, call.call_id)
            if shown is not None:
                self.send(self._builder.build_output(shown))

        loop = asyncio.get_running_loop()
        self._timers[call.key] = loop.call_later(OUTPUT_INTERVAL, send)

    def _read_blob(self, digest: str) -> str | None:
        if not digest or self._live is None:
            return None
        try:
            return self._live.recorder.store.get(digest).decode()
        except (OSError, UnicodeDecodeError, TrimtabError):
            return None

    def _describe(self, shown: ShownCall | None, call_id: str) -> JsonObject:
        if shown is None:
            return {"toolCallId": call_id, "status": "pending"}
        return {**self._builder.describe_call(shown), "status": shown.status}

    async def _ask_permission(self, request_id: str, request: JsonObject) -> Answer:
        agent_id = self._asked.pop(request_id, None)
        call_id = str(request.get("toolCallId") or "")
        call = self._describe(self._builder.find_call(agent_id, call_id), call_id)
        if content := await describe_request(request, call.get("rawInput"), self._read_file):
            call["content"] = content
        desk = self._desk
        assert desk is not None
        asked = PermissionRequested(request_id=request_id, permission_request=request)
        answer: Answer = await self.live.questions.first_answer(
            asked, lambda: desk.ask(request, call)
        )
        return answer

    async def _read_file(self, path: str) -> bytes | None:
        try:
            return (await self.live.controls.setup.workspace.read(path)).data
        except OSError:
            return None

    async def _ask_person(self, question: Question) -> Response | None:
        shown = self._builder.find_call(None, question.call_id)
        call_id = shown.id if shown is not None else None
        return await present_question(
            self.live,
            question,
            lambda: ask_question(self._connection, self.id, call_id, question),
        )

    async def _ask_form(self, form: Form) -> JsonObject | None:
        support = self.capabilities.elicitation
        assert support is not None
        return await show_form(self._connection, self.id, support, form)

    async def _ask_approval(self, plan: PlanReady) -> PlanVerdict:
        async def decide(content: str) -> PlanVerdict:
            assert self._desk is not None
            shown = self._builder.find_call(None, plan.call_id)
            return await self._desk.ask_plan(plan, content, self._describe(shown, plan.call_id))

        return await present_plan(self.live, plan, decide)


PLAN_STATES = {"in_progress": "in_progress", "done": "completed", "completed": "completed"}
