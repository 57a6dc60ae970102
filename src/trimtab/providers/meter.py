"""Measures the size of the context, at a cost that does not grow with the conversation."""

import asyncio

from trimtab.contracts.messages import Message
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.run import Conversation, Measured

CHARACTERS_PER_TOKEN = 4
"""An estimate for source code and English, which yields about a tenth too many tokens."""


class ContextMeter:
    """Estimates tokens from lengths, corrected by the counts that the service reports.

    A tokenizer is loaded only if a service reports no counts. It runs in a thread after the first
    call, on new messages only; the measurement never waits for it.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._measured = 0
        self._sent: int | None = None
        self._system: tuple[str, int] = ("", 0)
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)
        self._exact = BackgroundCounter(model)

    def measure(
        self, conversation: Conversation, tools: tuple[ToolSpec, ...], counted: int | None
    ) -> Measured:
        """Measure the next request. `counted` is the reported size of the last one, if any."""
        system = self._estimate_system(conversation.system)
        tool_tokens = self._estimate_tools(tools)
        estimate = conversation.characters // CHARACTERS_PER_TOKEN
        if counted is not None and self._sent is not None:
            total = system + tool_tokens + estimate
            ratio = min(4.0, max(0.25, counted / max(1, self._sent)))
            current = counted + int((total - self._sent) * ratio)
            system, tool_tokens = int(system * ratio), int(tool_tokens * ratio)
            self._remember(total)
            estimate = current - system - tool_tokens
        else:
            if counted is None and self._measured:
                estimate = self._exact.update(conversation, estimate)
            self._remember(system + tool_tokens + estimate)
        size = conversation.size
        return Measured(system=system, tools=tool_tokens, conversation=estimate, size=size)

    def _remember(self, total: int) -> None:
        self._measured += 1
        self._sent = total

    def _estimate_system(self, text: str) -> int:
        if text is not self._system[0]:
            self._system = (text, len(text) // CHARACTERS_PER_TOKEN)
        return self._system[1]

    def _estimate_tools(self, tools: tuple[ToolSpec, ...]) -> int:
        if tools is not self._tools[0]:
            characters = sum(
                len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in tools
            )
            self._tools = (tools, characters // CHARACTERS_PER_TOKEN)
        return self._tools[1]


class BackgroundCounter:
    """Counts the exact tokens of a conversation in a thread."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: object = None
        self._index = 0
        self._tokens = 0
        self._estimate = 0
        """The estimate for the messages that are counted."""
        self._task: asyncio.Task[None] | None = None

    def update(self, conversation: Conversation, estimate: int) -> int:
        """Return the counted tokens plus an estimate for the rest, and start to count the rest."""
        messages = conversation.messages
        if messages is not self._messages:
            self._messages, self._index, self._tokens, self._estimate = messages, 0, 0, 0
        result = self._tokens + estimate - self._estimate
        if self._task is None or self._task.done():
            new = list(messages[self._index :])
            counting = self._count(messages, new, estimate)
            self._task = asyncio.get_running_loop().create_task(counting)
        return result

    async def _count(self, messages: object, new: list[Message], estimate: int) -> None:
        tokens = await asyncio.to_thread(_count, self._model, new)
        if messages is self._messages:
            self._index += len(new)
            self._tokens += tokens
            self._estimate = estimate


async def count_text(model: str, text: str) -> int:
    """Count the tokens of a text in a thread."""

    def count() -> int:
        from trimtab.providers.tokens import counter_for

        return counter_for(model).text(text)

    return await asyncio.to_thread(count)


def _count(model: str, messages: list[Message]) -> int:
    from trimtab.providers.tokens import counter_for

    counter = counter_for(model)
    return sum(map(counter.of, messages))
