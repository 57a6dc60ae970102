"""The `create` tool: writes a new file, and never overwrites one."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, FileChange, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.diff import count_lines, unified_new
from trimtab.tools.files import fail, refuse_path, system_failure


class Create:
    spec = ToolSpec(
        name="create",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path of the new file"},
                "file_text": {"type": "string", "description": "Content of the new file"},
            },
            "required": ["path", "file_text"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        path = ctx.workspace.resolve(args["path"])
        return [
            Access(
                kind="write",
                target=path,
                intention=f"Create file {args['path']}",
                detail={
                    "fileName": path,
                    "diff": unified_new(path, args["file_text"]),
                    "newFileContents": args["file_text"],
                },
            )
        ]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name, text = args["path"], args["file_text"]
        path = ctx.workspace.resolve(name)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return fail("file_text contains half of a surrogate pair, which no file can contain.")
        info = ctx.workspace.inspect(path)
        refusal = refuse_path(name, info)
        if refusal and info.kind != "missing":
            return refusal
        try:
            if info.kind == "file" or not await self._write(path, data, ctx):
                return await self._exists(name, path, data, ctx)
        except OSError as error:
            return system_failure(name, error)
        ctx.workspace.remember(path, data)
        return ToolResult(
            text=f"Created file {name} with {len(text)} characters",
            detail=unified_new(path, text),
            changes=(
                FileChange(path=path, lines_added=count_lines(text), lines_removed=0, created=True),
            ),
        )

    async def _write(self, path: str, data: bytes, ctx: ToolContext) -> bool:
        """Write a new file; return False if the path exists by now."""
        try:
            await ctx.workspace.write(path, data, new=True)
        except FileExistsError:
            return False
        return True

    async def _exists(self, name: str, path: str, data: bytes, ctx: ToolContext) -> ToolResult:
        if (await ctx.workspace.read(path)).data == data:
            ctx.workspace.remember(path, data)
            return ToolResult(text=f"File {name} already exists with exactly this content.")
        return fail(
            f"Path {name} already exists and was not overwritten. Use edit to change it.",
            "Path already exists",
        )


TOOL = Create()
