"""The `report_intent` tool: shows the person what the agent will do next."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class ReportIntent:
    spec = ToolSpec(
        name="report_intent",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "intent": {"type": "string", "description": "At most four words, like a heading"}
            },
            "required": ["intent"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return ToolResult(text="Intent logged")


TOOL = ReportIntent()
