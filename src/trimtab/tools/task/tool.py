"""The `task` tool: gives work to another agent, and returns its answer or its id."""

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
            "description": {"type": "string", "description": "3 to 5 words"},
            "prompt": {"type": "string", "description": "The whole task"},
            "agent_type": {"type": "string", "enum": list(BUILTIN)},
            "name": {"type": "string"},
            "mode": {"type": "string", "enum": ["sync", "background"]},
            "model": {"type": "string", "description": "Only if the user asked for another"},
            "reasoning_effort": {"type": "string", "enum": ["low", "medium", "high"]},
        },
        "required": ["description", "prompt", "agent_type"],
    },
)


class TaskTool:
    """Starts an agent. Its calls are judged one by one, so starting it needs no permission.

    `agents` maps the names of custom agents to their descriptions.
    """

    def __init__(self, agents: Mapping[str, str], excluded: Sequence[str] = ()) -> None:
        self.spec = build_spec(agents, excluded) if agents or excluded else SPEC

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return await ctx.agents.delegate(
            Assignment(
                agent_type=args["agent_type"],
                prompt=args["prompt"],
                description=args["description"],
                name=args.get("name", ""),
                background=args.get("mode") == "background",
                model=args.get("model"),
                effort=args.get("reasoning_effort"),
            )
        )


def build_spec(agents: Mapping[str, str], excluded: Sequence[str]) -> ToolSpec:
    """Return the specification with custom agents and without excluded ones."""
    hidden = {*excluded, *agents}
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
