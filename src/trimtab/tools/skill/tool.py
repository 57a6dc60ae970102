"""The `skill` tool: the model asks for instructions it was only told the name of."""

from collections.abc import Mapping, Sequence

from trimtab.contracts.customization import Skill
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe


class SkillTool:
    """Answers that a skill was loaded; its text follows in a message of its own."""

    spec = ToolSpec(
        name="skill",
        description=describe(__file__),
        parameters={
            "type": "object",
            "properties": {"skill": {"type": "string", "description": "Name of the skill"}},
            "required": ["skill"],
        },
    )

    def __init__(self, skills: Mapping[str, Skill]) -> None:
        self._skills = skills

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        name = args["skill"]
        skill = self._skills.get(name)
        if skill is None:
            names = ", ".join(sorted(self._skills)[:50])
            return ToolResult(
                text=f"Skill not found: {name}. Skills you can load: {names or 'none'}.",
                kind="failure",
            )
        return ToolResult(
            text=f'Skill "{skill.name}" loaded successfully. '
            "Follow the instructions in the skill context."
        )


TOOL = SkillTool({})
