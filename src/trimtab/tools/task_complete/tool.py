"""The `task_complete` tool: declares that the agent is done or blocked."""

from collections.abc import Sequence

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class TaskComplete:
    spec = ToolSpec(
        name="task_complete",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {
                "summary": {
                    "type": "string",
                    "description": "What was accomplished and how it was verified",
                },
                "outcome": {
                    "type": "string",
                    "enum": ["completed", "blocked"],
                    "description": "Default completed",
                },
            },
            "required": ["summary"],
        },
    )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        blocked = args.get("outcome") == "blocked"
        return ToolResult(text="Task marked as blocked." if blocked else "Task marked as complete.")


TOOL = TaskComplete()
