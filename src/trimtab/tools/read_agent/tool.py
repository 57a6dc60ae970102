"""The `read_agent` tool: shows the state and the answers of an agent."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe

DEFAULT_TIMEOUT, MAX_TIMEOUT = 30.0, 300.0


class ReadAgent:
    spec = ToolSpec(
        name="read_agent",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "agent_id": {"type": "string"},
                "wait": {"type": "boolean"},
                "timeout": {"type": "number"},
                "since_turn": {"type": "integer"},
            },
            "required": ["agent_id"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        timeout = min(max(0.0, float(args.get("timeout", DEFAULT_TIMEOUT))), MAX_TIMEOUT)
        wait = timeout if args.get("wait") else 0.0
        since = int(args.get("since_turn", 0))
        return await ctx.agents.read(args["agent_id"], wait=wait, since_turn=since)


TOOL = ReadAgent()
