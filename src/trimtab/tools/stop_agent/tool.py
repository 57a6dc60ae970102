"""The `stop_agent` tool: stops an agent, those it started, and their commands."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class StopAgent:
    spec = ToolSpec(
        name="stop_agent",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "agent_id": {"type": "string"},
            },
            "required": ["agent_id"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return await ctx.agents.stop(args["agent_id"])


TOOL = StopAgent()
