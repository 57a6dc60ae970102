"""The `list_agents` tool: lists the agents of a session with their states."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class ListAgents:
    spec = ToolSpec(
        name="list_agents",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "include_completed": {"type": "boolean"},
                "scope": {"type": "string", "enum": ["siblings", "children", "all"]},
            },
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        completed = bool(args.get("include_completed"))
        return ctx.agents.list(args.get("scope", "all"), include_completed=completed)


TOOL = ListAgents()
