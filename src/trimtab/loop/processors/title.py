"""Writes the title of a session with the model configured for titles."""

import asyncio
from collections.abc import Awaitable, Callable

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.session import SessionTitleChanged, SessionWarning
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.processor import Processor
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.side_calls import SideCall, Writer, call_model

MAX_LENGTH = 80
PROMPT_LENGTH = 2000
"""The number of characters of the first prompt that the model sees."""


class Titles(Processor):
    """Writes a title once, in parallel to the first reply."""

    def __init__(
        self,
        instruction: str,
        find_writer: Callable[[], Awaitable[Writer | None]],
        save: Callable[[str], None],
    ) -> None:
        self._instruction = instruction
        self._find_writer = find_writer
        self._save = save
        self._asked = False

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if not self._asked and prompt.source == "user" and prompt.text:
            self._asked = True
            task = asyncio.get_running_loop().create_task(self._write(run, prompt.text))
            run.tasks.add(task)
            task.add_done_callback(run.tasks.discard)
        return prompt

    async def _write(self, run: Run, text: str) -> None:
        request_text = f"{self._instruction}\n\n<prompt>\n{text[:PROMPT_LENGTH]}\n</prompt>"
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
            call = SideCall(purpose="title", prompt=len(request_text) // 4, answer=32)
            reply = await call_model(run, writer, call, request)
        except ModelError as error:
            message = f"No title was written: {error.message}"
            run.session.emit(SessionWarning(warning_type="title", message=message))
            return
        title = " ".join(reply.message.text.split()).strip("\"'.#* ")[:MAX_LENGTH]
        if title:
            self._save(title)
            run.session.emit(SessionTitleChanged(title=title))
