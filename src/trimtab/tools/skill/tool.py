"""The `skill` tool: the model asks for instructions it was only told the name of."""

import re
from collections.abc import Collection, Mapping, Sequence

from trimtab.contracts.customization import Skill
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe

MOST_FOUND = 20
MOST_NAMED = 50
SHORT = 160
"""Characters of a description."""


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
            return ToolResult(
                text=f"Skill not found: {name}. {self._suggest(name)}", kind="failure"
            )
        return ToolResult(
            text=f'Skill "{skill.name}" loaded successfully. '
            "Follow the instructions in the skill context."
        )

    def _suggest(self, wanted: str) -> str:
        """The skills that speak of what was asked for, else the first ones."""
        words = set(re.findall(r"[^\W_]{3,}", wanted.lower()))
        ranked = sorted((-_count(words, skill), name) for name, skill in self._skills.items())
        fitting = [name for hits, name in ranked[:MOST_FOUND] if hits]
        if not fitting:
            names = ", ".join(name for _, name in ranked[:MOST_NAMED])
            return f"Skills you can load: {names or 'none'}."
        lines = (f"- {name}: {self._skills[name].description[:SHORT]}" for name in fitting)
        return "\n".join(("Skills that may be meant:", *lines))


def _count(words: Collection[str], skill: Skill) -> int:
    """How many of the words a skill has, or begins a word with."""
    text = f"{skill.name} {skill.description}".lower()
    return sum(re.search(rf"\b{word}", text) is not None for word in words)


TOOL = SkillTool({})
