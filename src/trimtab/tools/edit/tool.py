"""The `edit` tool: replaces text in a file and leaves all other bytes unchanged."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.contracts.workspace import FileContent, StaleFile
from trimtab.tools.description import describe
from trimtab.tools.diff import unified
from trimtab.tools.files import fail, refuse_path, shown_contents, system_failure
from trimtab.tools.splice import Mismatch, Splice, plan_edit

ATTEMPTS = 3
MAX_PREVIEWED = 8 * 1024 * 1024
STALE = (
    " Note: the file had been changed by something else since you last saw it; "
    "view it again before further edits."
)


class Edit:
    spec = ToolSpec(
        name="edit",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path of the file, absolute is best"},
                "old_str": {"type": "string", "description": "Text to replace, exact and unique"},
                "new_str": {"type": "string", "description": "Text to put in its place"},
            },
            "required": ["path", "old_str"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        path = ctx.workspace.resolve(args["path"])
        detail = {"fileName": path, "diff": "", "newFileContents": ""}
        plan = self._preview(args, path, ctx)
        if isinstance(plan, Splice):
            detail["diff"] = unified(path, plan.hunk)
            detail["newFileContents"] = shown_contents(plan.data)
        intention = f"Edit file {args['path']}"
        return [Access(kind="write", target=path, intention=intention, detail=detail)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name = args["path"]
        path = ctx.workspace.resolve(name)
        if refusal := refuse_path(name, ctx.workspace.inspect(path)):
            return refusal
        try:
            for _ in range(ATTEMPTS):
                before = await ctx.workspace.read(path)
                plan = plan_edit(before.data, args["old_str"], args.get("new_str", ""))
                if isinstance(plan, Mismatch):
                    return fail(f"{name}: {plan.text}", plan.summary)
                try:
                    await ctx.workspace.write(path, plan.data, stamp=before.stamp)
                except StaleFile:
                    continue
                return self._done(name, path, ctx, (before, plan))
        except OSError as error:
            return system_failure(name, error)
        return fail(f"{name} is being changed by another program right now: try again.")

    def _preview(self, args: Args, path: str, ctx: ToolContext) -> Splice | Mismatch | None:
        """Return the edit for a permission question; None if it cannot be shown."""
        info = ctx.workspace.inspect(path)
        if info.kind != "file" or info.size > MAX_PREVIEWED:
            return None
        try:
            data = ctx.workspace.load(path).data
        except OSError:
            return None
        return plan_edit(data, args["old_str"], args.get("new_str", ""))

    def _done(
        self, name: str, path: str, ctx: ToolContext, change: tuple[FileContent, Splice]
    ) -> ToolResult:
        before, plan = change
        stale = ctx.workspace.changed(path, before.data)
        ctx.workspace.remember(path, plan.data)
        added, removed = plan.hunk.counts()
        return ToolResult(
            text=f"File {name} updated with changes.{STALE if stale else ''}",
            detail=unified(path, plan.hunk),
            changes=(FileChange(path=path, lines_added=added, lines_removed=removed),),
        )


TOOL = Edit()
