"""A title for a session, written by the model that a person chose for titles."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.session import SessionTitleChanged, SessionWarning
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.processor import Processor
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Prompt, Run

if TYPE_CHECKING:
    from trimtab.loop.side_calls import Writer

LONGEST = 80
ASKED = 2000
"""Characters of the first prompt that are shown to the model."""


class Titles(Processor):
    """Asks once, beside the first answer. Without a model for titles the first prompt is one."""

    def __init__(
        self,
        instruction: str,
        find_writer: Callable[[], "Awaitable[Writer | None]"],
        keep: Callable[[str], None],
    ) -> None:
        self._instruction = instruction
        self._find_writer = find_writer
        self._keep = keep
        self._asked = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if not self._asked and prompt.source == "user" and prompt.text:
            import asyncio

            self._asked = True
            task = asyncio.get_running_loop().create_task(self._write(run, prompt.text))
            run.tasks.add(task)
            task.add_done_callback(run.tasks.discard)
        return prompt

    async def _write(self, run: Run, text: str) -> None:
        from trimtab.loop.side_calls import Errand, ask_beside

        request_text = f"{self._instruction}\n\n<prompt>\n{text[:ASKED]}\n</prompt>"
        try:
            writer = await self._find_writer()
            if writer is None:
                return
            request = Request(
                model=writer.model,
                system="",
                messages=(UserMessage.of(request_text),),
                stream=False,
            )
            errand = Errand(purpose="title", prompt=len(request_text) // 4, answer=32)
            reply = await ask_beside(run, writer, errand, request)
        except ModelError as error:
            message = f"No title was written: {error.message}"
            run.session.emit(SessionWarning(warning_type="title", message=message))
            return
        title = " ".join(reply.message.text.split()).strip("\"'.#* ")[:LONGEST]
        if title:
            self._keep(title)
            run.session.emit(SessionTitleChanged(title=title))
