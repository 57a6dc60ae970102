"""Limits the size of results: longer output is saved to a file, and the model gets a preview."""

import os

from trimtab.contracts.ids import new_output_name
from trimtab.contracts.tool import ToolContext

PREVIEW = 500
HINT = (
    "Consider using tools like grep (for searching), head/tail (for viewing start/end), view with "
    "view_range (for specific sections), or jq (for JSON) to examine portions of the output."
)


def kilobytes(size: int) -> str:
    return f"{size / 1024:.1f} KB"


def too_large(size: int, path: str, beginning: str) -> str:
    """Return the text that the model reads instead of output that was saved to a file."""
    return (
        f"Output too large to read at once ({kilobytes(size)}). Saved to: {path}\n{HINT}\n\n"
        f"Preview (first {PREVIEW} chars):\n{beginning[:PREVIEW]}"
    )


async def limit_output(text: str, ctx: ToolContext) -> str:
    """Return the text or, if it is too long, the path it was saved to and a preview."""
    if len(text) * 4 <= (limit := ctx.output_limit):
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    path = os.path.join(ctx.files, new_output_name("tool-output", ctx.call_id))
    try:
        await ctx.workspace.write(path, data)
    except OSError as error:
        return f"{text[: limit // 4]}\n<the rest could not be saved: {error.strerror}>"
    return too_large(len(data), path, text)
