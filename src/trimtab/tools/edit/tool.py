"""The `edit` tool: replaces text in a file and leaves all other bytes unchanged."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.diff import unified
from trimtab.tools.files import shown_contents
from trimtab.tools.rewrite import rewrite
from trimtab.tools.splice import Mismatch, Splice, plan_edit

MAX_PREVIEWED = 8 * 1024 * 1024


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

        def plan(data: bytes) -> Splice | Mismatch:
            planned = plan_edit(data, args["old_str"], args.get("new_str", ""))
            if isinstance(planned, Mismatch):
                return Mismatch(text=f"{name}: {planned.text}", summary=planned.summary)
            return planned

        return await rewrite(name, ctx, plan, lambda _: f"File {name} updated with changes.")

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


TOOL = Edit()
