"""Measures the context before each model call, and reports its size."""

from trimtab.contracts.events.context import SessionUsageInfo
from trimtab.contracts.processor import Processor, Stop
from trimtab.contracts.run import Meter, Run


class ContextUsage(Processor):
    """Measures each request. `limit` is the assumed window of a model of unknown size."""

    def __init__(self, meter: Meter, limit: int) -> None:
        self._meter = meter
        self._limit = limit
        self._reported = False

    async def before_request(self, run: Run) -> Stop | None:
        session = run.session
        measured = self._meter.measure(session.conversation, run.agent.specs, session.prompt_tokens)
        run.measured = measured
        session.emit(
            SessionUsageInfo(
                token_limit=run.agent.model.prompt_limit or self._limit,
                current_tokens=measured.total,
                messages_length=len(session.conversation.messages),
                system_tokens=measured.system,
                conversation_tokens=measured.conversation,
                tool_definitions_tokens=measured.tools,
                conversation_bytes=measured.size,
                is_initial=None if self._reported else True,
            )
        )
        self._reported = True
        return None
