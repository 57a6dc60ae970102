"""Tells before each call how full the context is."""

from trimtab.contracts.events.context import SessionUsageInfo
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Meter, Run


class ContextUsage(Processor):
    """`limit` is what a model of unknown size is taken to have."""

    def __init__(self, meter: Meter, limit: int) -> None:
        self._meter = meter
        self._limit = limit
        self._told = False

    async def before_request(self, run: Run) -> Stop | None:
        session = run.session
        found = self._meter.measure(session.conversation, run.agent.specs, session.prompt_tokens)
        run.measured = found
        session.emit(
            SessionUsageInfo(
                token_limit=run.agent.model.prompt_limit or self._limit,
                current_tokens=found.total,
                messages_length=len(session.conversation.messages),
                system_tokens=found.system,
                conversation_tokens=found.conversation,
                tool_definitions_tokens=found.tools,
                conversation_bytes=found.size,
                is_initial=None if self._told else True,
            )
        )
        self._told = True
        return None
