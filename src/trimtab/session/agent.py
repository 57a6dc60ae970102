"""A sub-agent's view of a session: a conversation of its own in the same log."""

import msgspec

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.tool import ToolExecutionStart
from trimtab.session.projections.conversation import Conversation
from trimtab.session.session import Session
from trimtab.session.unmasked import read_events


class AgentSession:
    """Records a sub-agent's events under its id and the tool call that started it.

    The conversation of an agent that worked before is folded from the log.
    """

    def __init__(self, session: Session, agent_id: str, call_id: str) -> None:
        self.id = session.id
        self.agent_id = agent_id
        self.conversation = Conversation(agent_id)
        self.prompt_tokens: int | None = None
        self.tool_calls = 0
        self._session = session
        self._call_id = call_id
        if agent_id in session.projections.agents.records:
            for event in read_events(session.log.path, self.conversation.reads):
                self.conversation.apply(event)
        session.projections.add(self.conversation)

    def emit(
        self, data: EventData, *, agent_id: str | None = None, ephemeral: bool | None = None
    ) -> Event:
        if getattr(data, "parent_tool_call_id", "") is None:
            data = msgspec.structs.replace(data, parent_tool_call_id=self._call_id)
        if isinstance(data, ToolExecutionStart):
            self.tool_calls += 1
        elif isinstance(data, ModelCall) and data.input_tokens is not None:
            self.prompt_tokens = data.input_tokens
        return self._session.emit(data, agent_id=agent_id or self.agent_id, ephemeral=ephemeral)

    async def synced(self) -> None:
        await self._session.synced()

    def leave(self) -> None:
        """Drop the conversation. Its events stay in the log."""
        self._session.projections.remove(self.conversation)
