"""Rewrites a file by a planned change, again from its new content if another program wrote it."""

from collections.abc import Callable

from trimtab.contracts.tool import FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import StaleFile
from trimtab.tools.diff import unified
from trimtab.tools.files import fail, refuse_path, system_failure
from trimtab.tools.splice import Mismatch, Splice

ATTEMPTS = 3
STALE = (
    " Note: the file had been changed by something else since you last saw it; "
    "view it again before further edits."
)


async def rewrite(
    name: str,
    ctx: ToolContext,
    plan: Callable[[bytes], Splice | Mismatch],
    describe: Callable[[Splice], str],
) -> ToolResult:
    """Write the change that `plan` makes of the file's bytes; `describe` says what was done."""
    path = ctx.workspace.resolve(name)
    if refusal := refuse_path(name, ctx.workspace.inspect(path)):
        return refusal
    try:
        for _ in range(ATTEMPTS):
            before = await ctx.workspace.read(path)
            planned = plan(before.data)
            if isinstance(planned, Mismatch):
                return fail(planned.text, planned.summary)
            try:
                await ctx.workspace.write(path, planned.data, stamp=before.stamp)
            except StaleFile:
                continue
            stale = ctx.workspace.changed(path, before.data)
            ctx.workspace.remember(path, planned.data)
            added, removed = planned.hunk.counts()
            return ToolResult(
                text=f"{describe(planned)}{STALE if stale else ''}",
                detail=unified(path, planned.hunk),
                changes=(FileChange(path=path, lines_added=added, lines_removed=removed),),
            )
    except OSError as error:
        return system_failure(name, error)
    return fail(f"{name} is being changed by another program right now: try again.")
