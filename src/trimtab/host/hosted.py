"""A live session shared by clients: sends them its events and brings their answers back."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.agents.client_tools import ExternalTool, ToolDefinition
from trimtab.agents.questions import Questions
from trimtab.contracts.errors import AuthenticationError, ConfigurationError, ModelError
from trimtab.contracts.events.codec import encode
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.question import CommandCompleted, CommandQueued
from trimtab.contracts.events.session import SessionTitleChanged
from trimtab.contracts.events.setup import (
    CapabilitiesChanged,
    CommandsChanged,
    SessionBackgroundTasksChanged,
)
from trimtab.contracts.events.tool import ExternalToolRequested
from trimtab.contracts.hooks import HookFailed
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.options import Client
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import (
    AskTrust,
    Form,
    PlanReady,
    PlanVerdict,
    Question,
    Response,
    SamplingQuestion,
    TokenRequest,
)
from trimtab.contracts.tool import Tool
from trimtab.hooks.answers import combine
from trimtab.host import client_questions
from trimtab.host.client_tasks import ClientTasks
from trimtab.host.own_commands import OwnCommands
from trimtab.host.participants import Capabilities, Participant
from trimtab.host.ports import ClientError, ClientGone, ClientPort, FileMirror
from trimtab.models.catalog import SessionCatalog
from trimtab.runtime.live import LiveSession
from trimtab.tools.catalog import NAMES

if TYPE_CHECKING:
    from trimtab.host.canvases import Canvases
    from trimtab.host.schedules import Schedules

_REQUESTS = frozenset(
    (
        "permission.requested",
        "external_tool.requested",
        "elicitation.requested",
        "command.execute",
        "mcp.oauth_required",
        "sampling.requested",
        "session_limits_exhausted.requested",
    )
)
_ANSWERS = frozenset(
    (
        "permission.completed",
        "external_tool.completed",
        "elicitation.completed",
        "command.completed",
        "mcp.oauth_completed",
        "sampling.completed",
        "session_limits_exhausted.completed",
    )
)

UPDATE_DELAY = 1.0
"""Seconds during which several events are announced as one update."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class HostedSession:
    """A live session and the clients that take part in it.

    Requests for tools, permissions, commands and elicitation are events that every client
    receives; the first answer wins. Other questions go to one client that supports them, and to
    the next such client if the first disconnects.
    """

    def __init__(self, session_id: str, on_update: Callable[[str], None]) -> None:
        """`on_update` is called soon after events that are stored."""
        self.id = session_id
        self._on_update = on_update
        self._update: asyncio.TimerHandle | None = None
        self.questions = Questions()
        self.participants: list[Participant] = []
        self.last_event = time.monotonic()
        self.times: JsonObject = {}
        """When the session was created, and its title then, for announcements."""
        self.interests: dict[str, str] = {}
        """The event types clients asked for, by handle."""
        self.mode_switch_handlers: set[str] = set()
        """Handles of clients that decide themselves whether to switch models at a rate limit."""
        self.settings: JsonObject = {}
        """Settings that only clients interpret: stored and reported, without effect here."""
        self.samplings: dict[str, asyncio.Task[JsonObject]] = {}
        """Model calls that clients make for MCP servers, by the clients' own ids."""
        self.catalog: SessionCatalog | None = None
        self.token: str | None = None
        self.user: JsonObject = {}
        """The account of the session's own token, as GitHub describes it."""
        self.mirror: FileMirror | None = None
        self._own_commands: OwnCommands | None = None
        self._client_tasks: ClientTasks | None = None
        self._canvases: Canvases | None = None
        self._live: LiveSession | None = None
        self._title = ""
        self._client_joined = asyncio.Event()
        self._requests: dict[str, tuple[Event, bytes]] = {}

    @property
    def live(self) -> LiveSession:
        assert self._live is not None
        return self._live

    @property
    def own_commands(self) -> OwnCommands:
        """The commands that people run through clients."""
        if self._own_commands is None:
            self._own_commands = OwnCommands(self.live.controls.setup.env)
        return self._own_commands

    @property
    def client_tasks(self) -> ClientTasks:
        """The tasks that clients work on outside of the session."""
        if self._client_tasks is None:
            self._client_tasks = ClientTasks(
                lambda: self.live.emit(SessionBackgroundTasksChanged())
            )
        return self._client_tasks

    @property
    def canvases(self) -> "Canvases":
        """The panels that clients declare and show."""
        if self._canvases is None:
            from trimtab.host.canvases import Canvases

            self._canvases = Canvases(self)
        return self._canvases

    @property
    def schedules(self) -> "Schedules":
        """The prompts that the session is sent at certain times."""
        from trimtab.host.schedules import schedules_of

        return schedules_of(self.live)

    def _forget_canvases(self) -> None:
        if self._canvases is not None:
            self._canvases.forget_missing()

    async def stop_samplings(self) -> None:
        """End the model calls that clients make for MCP servers."""
        tasks = tuple(self.samplings.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """End what people started through clients, and finish the copy of the session's files."""
        if self._update is not None:
            self._update.cancel()
        if self._own_commands is not None:
            await self._own_commands.aclose()
        if self.mirror is not None:
            await self.mirror.finish()

    def attach(self, live: LiveSession) -> None:
        """Set the session that the clients share, and give it their tools."""
        self._live = live
        live.host, live.questions = self, self.questions
        live.client_commands = lambda: [str(command.get("name")) for command in self.commands]
        self._title = live.projections.title.text
        self.refresh()

    def as_client(
        self,
        *,
        always_ask: bool = True,
        attended: bool = False,
        ask_trust: AskTrust | None = None,
    ) -> Client:
        """Return a `Client` that represents all participants to the runtime.

        A terminal is `attended` by a person and leaves to the rules what they decide; programs
        want to be asked about everything else.
        """
        return Client(
            on_event=self._on_event,
            ask=self._ask_permission,
            always_ask=always_ask,
            attended=attended,
            ask_trust=ask_trust,
            hooks=self,
            transform=self._transform,
            ask_person=self._ask_person,
            ask_approval=self._ask_approval,
            ask_form=self._ask_form,
            ask_token=self._ask_token,
            ask_sampling=self._ask_sampling,
            ask_mode_switch=self._ask_mode_switch,
            ask_limit=self._ask_limit,
            offer_command=self._offer_command,
            fetch_skills=self._fetch_skills,
        )

    def join(self, client: ClientPort, capabilities: Capabilities) -> Participant:
        """Add a client, or replace its capabilities if it has already joined."""
        self._check_names(capabilities.tools)
        self.leave(client, refresh=False)
        participant = Participant(client, capabilities)
        self.participants.append(participant)
        if self._live is not None:
            self.refresh()
            self._forget_canvases()
        self._client_joined.set()
        return participant

    def leave(self, client: ClientPort, *, refresh: bool = True) -> bool:
        """Remove a client and its tools; return False if it had not joined.

        Questions it was asked stay open for other clients.
        """
        before = len(self.participants)
        self.participants = [
            participant for participant in self.participants if participant.client is not client
        ]
        if len(self.participants) == before:
            return False
        if refresh and self._client_tasks is not None:
            self._client_tasks.leave(client)
        if refresh and self._live is not None:
            self.refresh()
            self._forget_canvases()
        return True

    def participant(self, client: ClientPort) -> Participant:
        """Return a client's participant; for a client that has not joined, a detached one."""
        return next(
            (participant for participant in self.participants if participant.client is client),
            Participant(client, Capabilities()),
        )

    def set_tools(self, client: ClientPort, tools: tuple[ToolDefinition, ...]) -> None:
        self._check_names(tools)
        participant = self.participant(client)
        participant.capabilities = msgspec.structs.replace(participant.capabilities, tools=tools)
        self.refresh()

    async def set_folder(self, cwd: str) -> None:
        """Work in another folder; the tools of clients are told of it with each call."""
        await self.live.set_folder(cwd)
        self.refresh()

    def refresh(self) -> None:
        """Update the session's tools to those of its present clients."""
        live = self.live
        tools: dict[str, Tool] = {}
        for participant in self.participants:
            for definition in participant.capabilities.tools:
                tools[definition.name] = ExternalTool(
                    definition, self.questions, live.emit, live.controls.options.cwd
                )
        if self.supports("request_canvas_renderer"):
            from trimtab.host.canvas_tools.tools import canvas_tools

            tools |= {tool.spec.name: tool for tool in canvas_tools(self.canvases)}
        offered = set()
        if self.supports("request_user_input"):
            offered.add("ask_user")
        if self.supports("request_exit_plan_mode"):
            offered.add("exit_plan_mode")
        live.controls.set_tools(tuple(tools.values()), offered)

    def _check_names(self, tools: tuple[ToolDefinition, ...]) -> None:
        for tool in tools:
            if not _TOOL_NAME.fullmatch(tool.name):
                raise ConfigurationError(
                    f"External tool {tool.name!r} has a name that model services reject; use at "
                    "most 64 letters, digits, _ and -."
                )
            if tool.name in NAMES and not tool.overrides_built_in_tool:
                raise ConfigurationError(
                    f"External tool {tool.name!r} has the name of a built-in tool; rename it or "
                    "set overridesBuiltInTool."
                )

    def supports(self, capability: str) -> bool:
        """Return True if any client has this capability."""
        return any(
            getattr(participant.capabilities, capability) for participant in self.participants
        )

    @property
    def capabilities(self) -> JsonObject:
        """The session's capabilities, as the protocol reports them."""
        elicitation = self.supports("request_elicitation")
        canvases = self.supports("request_canvas_renderer")
        apps = self._live is not None and self._live.controls.servers.has_apps
        ui = {"elicitation": elicitation, "mcpApps": apps, "canvases": canvases}
        return {"ui": ui, "extensions": False}

    @property
    def commands(self) -> list[JsonObject]:
        """The slash commands of clients; the first client to register a name keeps it."""
        found: dict[str, JsonObject] = {}
        for participant in self.participants:
            for command in participant.capabilities.commands:
                found.setdefault(str(command.get("name")), command)
        return list(found.values())

    def announce_changes(self, before: JsonObject, commands: list[JsonObject]) -> None:
        """Emit events if capabilities or commands differ from what they were before."""
        if self.capabilities != before:
            self.live.emit(CapabilitiesChanged(ui=self.capabilities["ui"]))
        if self.commands != commands:
            self.live.emit(CommandsChanged(commands=self.commands))

    def repeat_open_requests(self, participant: Participant) -> None:
        """Send a client that joined late the requests that still wait for an answer."""
        for event, line in self._requests.values():
            participant.send(self.id, event, line)
        for request in self._shown_requests():
            event = Event(
                type=request.wire_name,
                data=request,
                id=new_id(),
                timestamp=timestamp(),
                parent_id=None,
                ephemeral=True,
            )
            participant.send(self.id, event, encode(event))

    def waiting_calls(self) -> list[str]:
        """Return the ids of the tool calls that wait for a client's answer."""
        found = []
        for event, _ in self._requests.values():
            match event.data:
                case PermissionRequested(permission_request=request):
                    found.append(str(request.get("toolCallId") or ""))
                case ExternalToolRequested(tool_call_id=call_id):
                    found.append(call_id)
        return found

    def open_requests(self, wire_name: str) -> list[Any]:
        """Return the data of unanswered requests of an event type."""
        requests = [event.data for event, _ in self._requests.values()]
        return [
            request
            for request in (*requests, *self._shown_requests())
            if request.wire_name == wire_name
        ]

    def _shown_requests(self) -> list[Any]:
        """Return unanswered requests that were put to a person before this object followed."""
        shown = self.questions.requests
        return [request for key, request in shown.items() if key not in self._requests]

    async def get_token(self, provider: str) -> str:
        """Return a token for a model service from the first client that supplies one."""
        for participant in self.participants:
            try:
                reply = await participant.client.ask(
                    "providerToken.getToken", {"sessionId": self.id, "providerName": provider}
                )
            except (ClientGone, ClientError):
                continue
            token = reply.get("token") if isinstance(reply, dict) else None
            if isinstance(token, str):
                return token
        raise AuthenticationError(
            f"No client supplied a token for the provider {provider!r}; check its token callback."
        )

    def _on_event(self, event: Event, line: bytes) -> None:
        self.last_event = time.monotonic()
        if event.type in _REQUESTS:
            self._requests[event.data.request_id] = (event, line)
        elif event.type in _ANSWERS:
            self._requests.pop(event.data.request_id, None)
        for participant in self.participants:
            participant.send(self.id, event, line)
        if not event.ephemeral and self._update is None and self._live is not None:
            loop = asyncio.get_running_loop()
            self._update = loop.call_later(UPDATE_DELAY, self._announce_update)
        if event.type == "user.message" and self._live is not None:
            title = self.live.projections.title.text
            if title and title != self._title:
                self._title = title
                self.live.emit(SessionTitleChanged(title=title))

    def _announce_update(self) -> None:
        self._update = None
        self._on_update(self.id)

    async def _ask_permission(self, request_id: str, request: JsonObject) -> Answer:
        answer: Answer = await self.questions.wait(request_id)
        return answer

    @property
    def wanted(self) -> bool:
        """True if any client has hooks."""
        return self.supports("hooks")

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        """Run a hook in every client that has hooks; the strictest verdict wins."""
        outputs: list[JsonObject] = []
        for participant in [
            participant for participant in self.participants if participant.capabilities.hooks
        ]:
            params = {"sessionId": self.id, "hookType": hook, "input": given}
            try:
                reply = await participant.client.ask("hooks.invoke", params)
            except (ClientGone, ClientError) as error:
                raise HookFailed(str(error) or "the client returned an error") from None
            output = reply.get("output") if isinstance(reply, dict) else None
            if isinstance(output, dict):
                outputs.append(output)
        return combine(outputs) or None

    async def ask_any_client(self, capability: str, method: str, params: JsonObject) -> Any:
        """Ask a client that has the capability; if it disconnects, ask the next one.

        If no client has it, the question waits until one joins.
        """
        while True:
            for participant in [
                participant
                for participant in self.participants
                if getattr(participant.capabilities, capability)
            ]:
                try:
                    return await participant.client.ask(method, {"sessionId": self.id, **params})
                except ClientGone:
                    continue
            self._client_joined.clear()
            await self._client_joined.wait()

    async def _transform(self, sections: Mapping[str, str]) -> Mapping[str, str]:
        wrapped = {name: {"content": text} for name, text in sections.items()}
        for participant in self.participants:
            try:
                reply = await participant.client.ask(
                    "systemMessage.transform", {"sessionId": self.id, "sections": wrapped}
                )
            except (ClientGone, ClientError):
                continue
            changed = reply.get("sections") if isinstance(reply, dict) else None
            if isinstance(changed, dict):
                return {
                    name: str(part.get("content", sections[name]))
                    for name, part in changed.items()
                    if name in sections and isinstance(part, dict)
                }
        return sections

    async def _ask_person(self, question: Question) -> Response | None:
        return await client_questions.ask_person(self, question)

    async def _ask_form(self, form: Form) -> JsonObject | None:
        return await client_questions.ask_form(self, form)

    async def _ask_token(self, request: TokenRequest) -> JsonObject | None:
        return await client_questions.ask_token(self, request)

    async def _ask_sampling(self, question: SamplingQuestion) -> JsonObject | None:
        return await client_questions.ask_sampling(self, question)

    async def _ask_approval(self, plan: PlanReady) -> PlanVerdict:
        return await client_questions.ask_approval(self, plan)

    async def _fetch_skills(self, folder: str) -> bool:
        if not self.supports("has_skill_provider"):
            return False
        from trimtab.host.client_skills import fetch_skills

        return await fetch_skills(self, folder)

    async def _offer_command(self, command: str) -> bool:
        """Let a client that wants to know of queued commands run one."""
        if CommandQueued.wire_name not in self.interests.values() or not self.participants:
            return False
        request = CommandQueued(request_id=new_id(), command=command)
        try:
            return bool(await self.ask_by_event(request))
        finally:
            self.live.emit(CommandCompleted(request_id=request.request_id))

    async def ask_by_event(self, request: Any) -> Any:
        """Ask all clients by an event; return the first answer that names its request id."""
        return await self.questions.wait(request.request_id, lambda: self.live.emit(request))

    async def _ask_limit(self, spent: float, limit: float) -> bool | None:
        return await client_questions.ask_limit(self, spent, limit)

    async def _ask_mode_switch(self, error: ModelError) -> bool:
        return await client_questions.ask_mode_switch(self, error)
