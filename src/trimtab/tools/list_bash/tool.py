"""The `list_bash` tool: lists the commands of the session and their states."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe
from trimtab.tools.shells import describe_shells


class ListBash:
    spec = ToolSpec(
        name="list_bash",
        description=describe(__file__),
        parameters={"type": "object", "properties": {}},
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return ToolResult(text=describe_shells(ctx.workspace.shells.list()))


TOOL = ListBash()
