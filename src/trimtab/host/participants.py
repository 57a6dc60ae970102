"""Clients at a session: what each brings, and how events reach it."""

import msgspec

from trimtab.agents.client_tools import ToolDefinition
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.host.ports import ClientPort


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client brings to a session: its tools, and what it can be asked."""

    tools: tuple[ToolDefinition, ...] = ()
    commands: tuple[JsonObject, ...] = ()
    hooks: bool = False
    request_permission: bool = False
    request_user_input: bool = False
    request_elicitation: bool = False
    request_exit_plan_mode: bool = False
    request_auto_mode_switch: bool = False
    include_sub_agent_streaming_events: bool = True


class Participant:
    """A client's place at a session. While it holds, events wait: a reply goes first."""

    def __init__(self, client: ClientPort, capabilities: Capabilities) -> None:
        self.client = client
        self.capabilities = capabilities
        self._held: list[tuple[Event, bytes]] | None = None

    def hold(self) -> None:
        if self._held is None:
            self._held = []

    def release(self, session_id: str) -> None:
        held, self._held = self._held, None
        for event, line in held or ():
            self.client.send_event(session_id, event, line)

    def send(self, session_id: str, event: Event, line: bytes) -> None:
        if self._held is not None:
            self._held.append((event, line))
        elif not (event.agent_id and event.ephemeral) or (
            self.capabilities.include_sub_agent_streaming_events
        ):
            self.client.send_event(session_id, event, line)
