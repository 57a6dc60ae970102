"""The `task` tool: another agent does a part of the work, and its answer is the result."""

from collections.abc import Mapping, Sequence

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, Assignment, ToolContext, ToolResult
from trimtab.tools.description import describe

BUILTIN = ("explore", "task", "general-purpose", "code-review", "research")
SPEC = ToolSpec(
    name="task",
    description=describe(__file__),
    parameters={
        "type": "object",
        "properties": {
            "description": {
                "type": "string",
                "description": "What the agent is for, in 3 to 5 words",
            },
            "prompt": {"type": "string", "description": "The whole task"},
            "agent_type": {"type": "string", "enum": list(BUILTIN)},
            "model": {
                "type": "string",
                "description": "Another model than the agent's own; only if the user asked for it",
            },
            "reasoning_effort": {"type": "string", "enum": ["low", "medium", "high"]},
        },
        "required": ["description", "prompt", "agent_type"],
    },
)


class TaskTool:
    """Starts an agent. What the agent does is judged call by call, so starting one is harmless.

    `agents` are those people wrote, by name, each with what it is for.
    """

    def __init__(self, agents: Mapping[str, str], left_out: Sequence[str] = ()) -> None:
        self.spec = offer(agents, left_out) if agents or left_out else SPEC

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return await ctx.delegate(
            Assignment(
                agent_type=args["agent_type"],
                prompt=args["prompt"],
                description=args["description"],
                model=args.get("model"),
                effort=args.get("reasoning_effort"),
            )
        )


def offer(agents: Mapping[str, str], left_out: Sequence[str]) -> ToolSpec:
    """The tool as a model sees it where there are more agents, or fewer."""
    hidden = {*left_out, *agents}
    names = [name for name in BUILTIN if name not in hidden]
    lines = [
        line
        for line in SPEC.description.split("\n")
        if not any(line.startswith(f"- {name}:") for name in hidden)
    ]
    lines += [f"- {name}: {about or 'no description'}" for name, about in agents.items()]
    parameters = msgspec.json.decode(msgspec.json.encode(SPEC.parameters))
    parameters["properties"]["agent_type"]["enum"] = [*names, *agents]
    return ToolSpec(name="task", description="\n".join(lines), parameters=parameters)


TOOL = TaskTool({})
