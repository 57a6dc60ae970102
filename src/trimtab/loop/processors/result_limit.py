"""Limits a tool result to half of the prompt, so that there is room for what follows."""

import os
from collections.abc import Awaitable, Callable

import msgspec

from trimtab.contracts.ids import new_output_name
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import ToolResult

MAX_TOKENS_PER_CHARACTER = 5
"""A character has up to four bytes, and some services count more than one token for each."""
MAX_CHARACTERS_PER_TOKEN = 16
"""Longer tokens are runs of blanks."""

Count = Callable[[str, str], Awaitable[int]]
"""Returns the tokens of a text for a model: `count(model, text)`."""


class ResultLimit(Processor):
    """Removes the middle of a result that is too long; runs last, since others add to results.

    `window` is the assumed window of a model of unknown size.
    """

    def __init__(self, count: Count, window: int) -> None:
        self._count = count
        self._window = window

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        limit = (run.agent.model.prompt_limit or self._window) // 2
        text = result.text
        if len(text) * MAX_TOKENS_PER_CHARACTER <= limit:
            return result
        model, kept = run.agent.model.name, limit * MAX_CHARACTERS_PER_TOKEN
        if len(text) <= kept:
            tokens = await self._count(model, text)
            if tokens <= limit:
                return result
            kept = len(text) * limit // tokens
        location = await save(run, pending, text)
        shortened = shorten(text, kept, location)
        while kept and (tokens := await self._count(model, shortened)) > limit:
            kept = min(kept * limit // tokens, kept - 1)
            shortened = shorten(text, kept, location)
        return msgspec.structs.replace(result, text=shortened)


def shorten(text: str, kept: int, location: str) -> str:
    """Return the beginning and the end of a text, with a note between them."""
    half = kept // 2
    end = text[len(text) - half :]
    omitted = count(len(text) - 2 * half, "character")
    note = f"[{omitted} left out: the result would fill half of the prompt. {location}]"
    return f"{text[:half]}\n{note}\n{end}"


async def save(run: Run, pending: PendingCall, text: str) -> str:
    """Save the whole text to a file; return a sentence that names the file."""
    ctx = run.tool_context(pending.call.id)
    path = os.path.join(ctx.files, new_output_name("tool-result", pending.call.id))
    try:
        await ctx.workspace.write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        return f"The whole result could not be saved ({error.strerror}); ask for less at a time."
    return f"The whole result is in {path}; read parts of it."
