"""Prompts that are commands: answered at once, without the model."""

from collections.abc import Awaitable, Callable

from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import Prompt, Run


class SlashCommands(Processor):
    """`answer` is given a prompt that begins with a slash; None from it: it is no command."""

    answer: Callable[[Run, str], Awaitable[str | None]] | None = None

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source != "user" or not prompt.text.startswith("/") or self.answer is None:
            return prompt
        answer = await self.answer(run, prompt.text)
        if answer is None:
            return prompt
        run.session.emit(SessionInfo(info_type="command", message=answer))
        return None
