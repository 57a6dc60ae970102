"""The `write_agent` tool: sends a message to agents."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class WriteAgent:
    spec = ToolSpec(
        name="write_agent",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "agent_id": {"type": "string"},
                "agent_ids": {"type": "array", "items": {"type": "string"}},
                "scope": {"type": "string", "enum": ["siblings", "children", "all"]},
                "message": {"type": "string"},
            },
            "required": ["message"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        named = [args["agent_id"]] if args.get("agent_id") else []
        ids = [*named, *args.get("agent_ids", ())]
        return ctx.agents.write(ids, args.get("scope"), args["message"])


TOOL = WriteAgent()
