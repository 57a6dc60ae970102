"""Prompts that are commands: answered at once, without the model."""

from collections.abc import Awaitable, Callable

from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run


class SlashCommands(Processor):
    """`answer` is called with prompts that begin with a slash; it returns None for other texts."""

    def __init__(self, answer: Callable[[str], Awaitable[str | None]]) -> None:
        self._answer = answer

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source != "user" or not prompt.text.startswith("/"):
            return prompt
        answer = await self._answer(prompt.text)
        if answer is None:
            return prompt
        run.session.emit(SessionInfo(info_type="command", message=answer))
        return None
