"""The `stop_bash` tool: ends a background command with all its descendants."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.contracts.workspace import ShellError
from trimtab.tools.description import describe
from trimtab.tools.shells import refuse_shell


class StopBash:
    spec = ToolSpec(
        name="stop_bash",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {"shellId": {"type": "string", "description": "Id of the command"}},
            "required": ["shellId"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        try:
            await ctx.workspace.shells.stop(args["shellId"])
        except ShellError as error:
            return refuse_shell(error, "stop", ctx)
        return ToolResult(text=f"<command with id: {args['shellId']} stopped>")


TOOL = StopBash()
