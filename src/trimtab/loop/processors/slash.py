"""Answers slash commands at once, without the model."""

from collections.abc import Awaitable, Callable

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.session import SessionInfo
from trimtab.contracts.processor import Processor
from trimtab.contracts.run import COMMAND, Prompt, Run

PREFIXES = ("/", "!")


class SlashCommands(Processor):
    """Passes prompts that look like a command to `answer`.

    `answer` returns None for text that is not a command, and raises a `TrimtabError` for a command
    that is unknown or fails: the model never sees a mistyped command.
    """

    def __init__(
        self,
        answer: Callable[[str], Awaitable[str | None]],
        offer: Callable[[str], Awaitable[bool]] | None = None,
        expand: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        """`offer` lets a client run a queued command, and returns True if it did.

        `expand` returns the prompt that a command stands for, or None.
        """
        self._answer = answer
        self._offer = offer
        self._expand = expand

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt | None:
        if prompt.source == COMMAND:
            await self._run_queued(run, prompt)
            return None
        if prompt.source != "user" or not prompt.text.startswith(PREFIXES):
            return prompt
        try:
            text = None if self._expand is None else await self._expand(prompt.text)
            if text is not None:
                shown = prompt.display or prompt.text
                return msgspec.structs.replace(prompt, text=text, display=shown)
            answer = await self._answer(prompt.text)
        except TrimtabError:
            run.inbox.consume(prompt)  # it would fail again
            raise
        if answer is None:
            return prompt
        run.session.emit(SessionInfo(info_type="command", message=answer))
        return None

    async def _run_queued(self, run: Run, prompt: Prompt) -> None:
        """Run a queued command, by a client or by ourselves; a failure does not stop the queue."""
        if self._offer is not None and await self._offer(prompt.text):
            return
        try:
            answer = await self._answer(prompt.text)
        except TrimtabError as error:
            answer = error.message
        message = answer if answer is not None else f"Unknown command: {prompt.text}; see /help."
        run.session.emit(SessionInfo(info_type="command", message=message))
