"""Answers slash commands at once, without the model."""

from collections.abc import Awaitable, Callable

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run

PREFIXES = ("/", "!")


class SlashCommands(Processor):
    """Passes prompts that look like a command to `answer`.

    `answer` returns None for text that is not a command, and raises a `TrimtabError` for a command
    that is unknown or fails: the model never sees a mistyped command.
    """

    def __init__(self, answer: Callable[[str], Awaitable[str | None]]) -> None:
        self._answer = answer

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source != "user" or not prompt.text.startswith(PREFIXES):
            return prompt
        try:
            answer = await self._answer(prompt.text)
        except TrimtabError:
            run.inbox.consume(prompt)  # it would fail again
            raise
        if answer is None:
            return prompt
        run.session.emit(SessionInfo(info_type="command", message=answer))
        return None
