"""A tool result takes at most half of the prompt, so that what follows it has room."""

import os
from collections.abc import Awaitable, Callable

import msgspec

from trimtab.contracts.ids import new_output_name
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import ToolResult

MOST_TOKENS = 5
"""Tokens a character may have: four bytes, and some services count more than one for each."""
LONGEST_TOKEN = 16
"""Characters a token has in text that says anything; longer ones are runs of blanks."""

Count = Callable[[str, str], Awaitable[int]]
"""The tokens of a text, as a model counts them."""


class ResultLimit(Processor):
    """Cuts the middle out of what is too long. Last of all, as others may add to a result.

    `window` is what a model of unknown size is taken to have.
    """

    def __init__(self, count: Count, window: int) -> None:
        self._count = count
        self._window = window

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        limit = (run.agent.model.prompt_limit or self._window) // 2
        text = result.text
        if len(text) * MOST_TOKENS <= limit:
            return result
        model, kept = run.agent.model.name, limit * LONGEST_TOKEN
        if len(text) <= kept:
            tokens = await self._count(model, text)
            if tokens <= limit:
                return result
            kept = len(text) * limit // tokens
        where = await save(run, pending, text)
        shown = cut(text, kept, where)
        while kept and (tokens := await self._count(model, shown)) > limit:
            kept = min(kept * limit // tokens, kept - 1)
            shown = cut(text, kept, where)
        return msgspec.structs.replace(result, text=shown)


def cut(text: str, kept: int, where: str) -> str:
    """The beginning and the end of a text, with a remark between them."""
    half = kept // 2
    end = text[len(text) - half :]
    left_out = count(len(text) - 2 * half, "character")
    remark = f"[{left_out} left out: the result would fill half of the prompt. {where}]"
    return f"{text[:half]}\n{remark}\n{end}"


async def save(run: Run, pending: PendingCall, text: str) -> str:
    """Put the whole into a file; returns a sentence that says where it is."""
    ctx = run.tool_context(pending.call.id)
    path = os.path.join(ctx.files, new_output_name("tool-result", pending.call.id))
    try:
        await ctx.workspace.write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        return f"The whole could not be saved ({error.strerror}); ask for less at a time."
    return f"The whole is in {path}; look at parts of it."
