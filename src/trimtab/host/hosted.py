"""A session that clients share: who sits at it, who is asked what, who hears what."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.agents.client_tools import ExternalTool, ToolDefinition
from trimtab.agents.questions import Questions
from trimtab.contracts.errors import AuthenticationError, ConfigurationError, ModelError
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.session import SessionTitleChanged
from trimtab.contracts.events.setup import CapabilitiesChanged, CommandsChanged
from trimtab.contracts.events.tool import ExternalToolRequested
from trimtab.contracts.hooks import HookFailed
from trimtab.contracts.options import Client
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import PlanReady, PlanVerdict, Question, Response
from trimtab.contracts.tool import Tool
from trimtab.hooks.answers import combine
from trimtab.host.participants import Capabilities, Participant
from trimtab.host.ports import ClientError, ClientGone, ClientPort, FileMirror
from trimtab.models.catalog import SessionCatalog
from trimtab.runtime.live import LiveSession

_REQUESTS = frozenset(
    ("permission.requested", "external_tool.requested", "elicitation.requested", "command.execute")
)
_ANSWERS = frozenset(
    (
        "permission.completed",
        "external_tool.completed",
        "elicitation.completed",
        "command.completed",
    )
)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class HostedSession:
    """One live session and the clients at it.

    Broadcast questions (tools, permissions, commands, elicitation) are events; whoever answers
    first has answered. Other questions are put to one client that can be asked, and to the next
    one if that leaves.
    """

    def __init__(self, session_id: str, on_title: Callable[[str], None]) -> None:
        self.id = session_id
        self.on_title = on_title
        self.questions = Questions()
        self.participants: list[Participant] = []
        self.last_event = time.monotonic()
        self.interests: dict[str, str] = {}
        self.handles: set[str] = set()
        """Of clients that want to answer by themselves when a model's limit is reached."""
        self.settings: JsonObject = {}
        """What clients set and only they read: kept, reported, without effect here."""
        self.catalog: SessionCatalog | None = None
        self.token: str | None = None
        self.mirror: FileMirror | None = None
        self._live: LiveSession | None = None
        self._title = ""
        self._came = asyncio.Event()
        self._requests: dict[str, tuple[Event, bytes]] = {}

    @property
    def live(self) -> LiveSession:
        assert self._live is not None
        return self._live

    def use(self, live: LiveSession) -> None:
        self._live = live
        live.client_commands = lambda: [str(command.get("name")) for command in self.commands]
        self._title = live.projections.title.text
        self.refresh()

    def as_client(self) -> Client:
        """The clients as the runtime sees them: as one."""
        return Client(
            on_event=self._on_event,
            ask=self._ask_permission,
            judges=True,
            hooks=self,
            transform=self._transform,
            ask_person=self._ask_person,
            ask_approval=self._ask_approval,
            ask_mode_switch=self._ask_mode_switch,
        )

    def join(self, client: ClientPort, capabilities: Capabilities) -> Participant:
        """Add a client, or replace what it brings."""
        self._check(capabilities.tools)
        self.leave(client, refresh=False)
        participant = Participant(client, capabilities)
        self.participants.append(participant)
        if self._live is not None:
            self.refresh()
        self._came.set()
        return participant

    def leave(self, client: ClientPort, *, refresh: bool = True) -> bool:
        """A client goes and takes what it brought along; its open questions stay."""
        before = len(self.participants)
        self.participants = [
            participant for participant in self.participants if participant.client is not client
        ]
        if len(self.participants) == before:
            return False
        if refresh and self._live is not None:
            self.refresh()
        return True

    def participant(self, client: ClientPort) -> Participant:
        """A client's place; a client that has not joined gets one that leads nowhere."""
        return next(
            (participant for participant in self.participants if participant.client is client),
            Participant(client, Capabilities()),
        )

    def set_tools(self, client: ClientPort, tools: tuple[ToolDefinition, ...]) -> None:
        self._check(tools)
        participant = self.participant(client)
        participant.capabilities = msgspec.structs.replace(participant.capabilities, tools=tools)
        self.refresh()

    def refresh(self) -> None:
        """Give the run the tools and capabilities of those who are here."""
        live = self.live
        tools: dict[str, Tool] = {}
        for participant in self.participants:
            for definition in participant.capabilities.tools:
                tools[definition.name] = ExternalTool(
                    definition, self.questions, live.emit, live.controls.options.cwd
                )
        offered = set()
        if self.able("request_user_input"):
            offered.add("ask_user")
        if self.able("request_exit_plan_mode"):
            offered.add("exit_plan_mode")
        live.controls.set_tools(tuple(tools.values()), offered)

    def _check(self, tools: tuple[ToolDefinition, ...]) -> None:
        from trimtab.tools.catalog import NAMES

        for tool in tools:
            if not NAME.fullmatch(tool.name):
                raise ConfigurationError(
                    f"External tool {tool.name!r} has a name model services refuse; use letters, "
                    "digits, _ and -, 64 at most."
                )
            if tool.name in NAMES and not tool.overrides_built_in_tool:
                raise ConfigurationError(
                    f"External tool {tool.name!r} has the name of a built-in tool; rename it or "
                    "set overridesBuiltInTool."
                )

    def able(self, what: str) -> bool:
        """Whether any client here can be asked this."""
        return any(getattr(participant.capabilities, what) for participant in self.participants)

    @property
    def capabilities(self) -> JsonObject:
        elicitation = self.able("request_elicitation")
        return {"ui": {"elicitation": elicitation, "mcpApps": False}, "extensions": False}

    @property
    def commands(self) -> list[JsonObject]:
        """The slash commands clients registered, by name; the first to register one has it."""
        found: dict[str, JsonObject] = {}
        for participant in self.participants:
            for command in participant.capabilities.commands:
                found.setdefault(str(command.get("name")), command)
        return list(found.values())

    def announce_changes(self, before: JsonObject, commands: list[JsonObject]) -> None:
        """Tell everybody if coming or going changed what can be asked or called."""
        if self.capabilities != before:
            self.live.emit(CapabilitiesChanged(ui=self.capabilities["ui"]))
        if self.commands != commands:
            self.live.emit(CommandsChanged(commands=self.commands))

    def repeat_open_requests(self, participant: Participant) -> None:
        """Show a client that came later what waits for an answer."""
        for event, line in self._requests.values():
            participant.send(self.id, event, line)

    def waiting_calls(self) -> list[str]:
        """The tool calls that a client has been asked about and has not answered."""
        found = []
        for event, _ in self._requests.values():
            match event.data:
                case PermissionRequested(permission_request=asked):
                    found.append(str(asked.get("toolCallId") or ""))
                case ExternalToolRequested(tool_call_id=call_id):
                    found.append(call_id)
        return found

    def open_requests(self, wire_name: str) -> list[Any]:
        """The data of the requests of one type that nobody has answered."""
        return [event.data for event, _ in self._requests.values() if event.type == wire_name]

    async def get_token(self, provider: str) -> str:
        """A token for a model service, from a client that gives one."""
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
            f"No client gave a token for the provider {provider!r}; check its token callback."
        )

    def _on_event(self, event: Event, line: bytes) -> None:
        self.last_event = time.monotonic()
        if event.type in _REQUESTS:
            self._requests[event.data.request_id] = (event, line)
        elif event.type in _ANSWERS:
            self._requests.pop(event.data.request_id, None)
        for participant in self.participants:
            participant.send(self.id, event, line)
        if event.type == "user.message" and self._live is not None:
            title = self.live.projections.title.text
            if title and title != self._title:
                self._title = title
                self.live.emit(SessionTitleChanged(title=title))
                self.on_title(self.id)

    async def _ask_permission(self, request_id: str, request: JsonObject) -> Answer:
        answer: Answer = await self.questions.wait(request_id)
        return answer

    @property
    def wanted(self) -> bool:
        """Whether any client has hooks."""
        return self.able("hooks")

    async def call(self, hook: str, given: JsonObject) -> JsonObject | None:
        """Run a hook in every client that has hooks; the strictest verdict of theirs counts."""
        outputs: list[JsonObject] = []
        for participant in [
            participant for participant in self.participants if participant.capabilities.hooks
        ]:
            params = {"sessionId": self.id, "hookType": hook, "input": given}
            try:
                reply = await participant.client.ask("hooks.invoke", params)
            except (ClientGone, ClientError) as error:
                raise HookFailed(str(error) or "the client gave an error") from None
            output = reply.get("output") if isinstance(reply, dict) else None
            if isinstance(output, dict):
                outputs.append(output)
        return combine(outputs) or None

    async def ask_one(self, able: str, method: str, params: JsonObject) -> Any:
        """Put a question to a client that can be asked; to another one if that leaves.

        With nobody there the question waits for somebody to come.
        """
        while True:
            for participant in [
                participant
                for participant in self.participants
                if getattr(participant.capabilities, able)
            ]:
                try:
                    return await participant.client.ask(method, {"sessionId": self.id, **params})
                except ClientGone:
                    continue
            self._came.clear()
            await self._came.wait()

    async def first(self, request_id: str, asking: Callable[[], Awaitable[Any]]) -> Any:
        """The answer that comes first: a client's reply, or one given by the request's id."""
        waiting = asyncio.ensure_future(self.questions.wait(request_id))
        asked = asyncio.ensure_future(asking())
        try:
            await asyncio.wait((waiting, asked), return_when=asyncio.FIRST_COMPLETED)
            return (asked if asked.done() and not waiting.done() else waiting).result()
        finally:
            for task in (waiting, asked):
                task.cancel()
            await asyncio.gather(waiting, asked, return_exceptions=True)

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
        from trimtab.host.client_questions import ask_person

        return await ask_person(self, question)

    async def _ask_approval(self, plan: PlanReady) -> PlanVerdict:
        from trimtab.host.client_questions import ask_approval

        return await ask_approval(self, plan)

    async def _ask_mode_switch(self, error: ModelError) -> bool:
        from trimtab.host.client_questions import ask_mode_switch

        return await ask_mode_switch(self, error)
