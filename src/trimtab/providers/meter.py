"""How full the context is, at a cost that does not grow with the conversation."""

import asyncio

from trimtab.contracts.messages import Message
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.run import Conversation, Measured

CHARACTERS_PER_TOKEN = 4
"""A fair guess for source code and English, about a tenth too high."""


class ContextMeter:
    """Guesses from lengths, and is corrected by what the service counts.

    Only a service that does not count makes it load a tokenizer: in a thread, after the first
    call, and then for the messages that are new. The answer never waits for that.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._measured = 0
        self._sent: int | None = None
        self._system: tuple[str, int] = ("", 0)
        self._tools: tuple[tuple[ToolSpec, ...], int] = ((), 0)
        self._exact = Exact(model)

    def measure(
        self, conversation: Conversation, tools: tuple[ToolSpec, ...], counted: int | None
    ) -> Measured:
        """`counted` is what the service said the last prompt had, if it said it."""
        system, tool_tokens = self._guess_system(conversation.system), self._guess_tools(tools)
        guess = conversation.characters // CHARACTERS_PER_TOKEN
        if counted is not None and self._sent is not None:
            total = system + tool_tokens + guess
            ratio = min(4.0, max(0.25, counted / max(1, self._sent)))
            current = counted + int((total - self._sent) * ratio)
            system, tool_tokens = int(system * ratio), int(tool_tokens * ratio)
            self._remember(total)
            guess = current - system - tool_tokens
        else:
            if counted is None and self._measured:
                guess = self._exact.update(conversation, guess)
            self._remember(system + tool_tokens + guess)
        size = conversation.size
        return Measured(system=system, tools=tool_tokens, conversation=guess, size=size)

    def _remember(self, total: int) -> None:
        self._measured += 1
        self._sent = total

    def _guess_system(self, text: str) -> int:
        if text is not self._system[0]:
            self._system = (text, len(text) // CHARACTERS_PER_TOKEN)
        return self._system[1]

    def _guess_tools(self, tools: tuple[ToolSpec, ...]) -> int:
        if tools is not self._tools[0]:
            written = sum(len(t.name) + len(t.description) + len(str(t.parameters)) for t in tools)
            self._tools = (tools, written // CHARACTERS_PER_TOKEN)
        return self._tools[1]


class Exact:
    """The tokens of a conversation as far as a thread has counted them."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._messages: object = None
        self._index = 0
        self._tokens = 0
        self._guess = 0
        self._task: asyncio.Task[None] | None = None

    def update(self, conversation: Conversation, guess: int) -> int:
        """What is counted and a guess for the rest; has the rest counted by the next time."""
        messages = conversation.messages
        if messages is not self._messages:
            self._messages, self._index, self._tokens, self._guess = messages, 0, 0, 0
        result = self._tokens + guess - self._guess
        if self._task is None or self._task.done():
            new = list(messages[self._index :])
            counting = self._count(messages, new, guess)
            self._task = asyncio.get_running_loop().create_task(counting)
        return result

    async def _count(self, messages: object, new: list[Message], guess: int) -> None:
        tokens = await asyncio.to_thread(_count, self._model, new)
        if messages is self._messages:
            self._index += len(new)
            self._tokens += tokens
            self._guess = guess


async def count_text(model: str, text: str) -> int:
    """The tokens of a text, counted in a thread."""

    def count() -> int:
        from trimtab.providers.tokens import counter_for

        return counter_for(model).text(text)

    return await asyncio.to_thread(count)


def _count(model: str, messages: list[Message]) -> int:
    from trimtab.providers.tokens import counter_for

    counter = counter_for(model)
    return sum(map(counter.of, messages))
