"""The clients of a hosted session: their capabilities, and the delivery of events to them."""

import msgspec

from trimtab.agents.client_tools import ToolDefinition
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.host.ports import ClientPort


class CanvasAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str
    description: str | None = None
    input_schema: JsonObject | None = None


class Canvas(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A canvas as a client declares it."""

    id: str
    display_name: str = ""
    description: str = ""
    input_schema: JsonObject | None = None
    actions: tuple[CanvasAction, ...] | None = None


class CanvasProvider(msgspec.Struct, frozen=True):
    """The identity under which a client declares canvases in every session."""

    id: str
    name: str | None = None


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The tools and commands a client contributes, and the questions it can answer."""

    tools: tuple[ToolDefinition, ...] = ()
    commands: tuple[JsonObject, ...] = ()
    hooks: bool = False
    has_skill_provider: bool = False
    request_permission: bool = False
    request_user_input: bool = False
    request_elicitation: bool = False
    request_exit_plan_mode: bool = False
    request_auto_mode_switch: bool = False
    include_sub_agent_streaming_events: bool = True
    canvases: tuple[Canvas, ...] = ()
    canvas_provider: CanvasProvider | None = None
    request_canvas_renderer: bool = False
    """True if the model may open canvases, because the client shows them to a person."""


class Participant:
    """A client of one session.

    Between `hold` and `release` its events are buffered, so that a reply arrives before them.
    """

    def __init__(self, client: ClientPort, capabilities: Capabilities) -> None:
        self.client = client
        self.capabilities = capabilities
        self._buffer: list[tuple[Event, bytes]] | None = None

    def hold(self) -> None:
        if self._buffer is None:
            self._buffer = []

    def release(self, session_id: str) -> None:
        buffered, self._buffer = self._buffer, None
        for event, line in buffered or ():
            self.client.send_event(session_id, event, line)

    def send(self, session_id: str, event: Event, line: bytes) -> None:
        if self._buffer is not None:
            self._buffer.append((event, line))
        elif not (event.agent_id and event.ephemeral) or (
            self.capabilities.include_sub_agent_streaming_events
        ):
            self.client.send_event(session_id, event, line)
