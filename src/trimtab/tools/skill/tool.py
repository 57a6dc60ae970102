"""The `skill` tool: loads a skill that the model knows by name and description."""

import re
from collections.abc import Collection, Mapping, Sequence

from trimtab.contracts.customization import Skill
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, ToolContext, ToolResult
from trimtab.tools.description import describe

MAX_SUGGESTED = 20
MAX_LISTED = 50
MAX_DESCRIPTION = 160


class SkillTool:
    """Confirms that a skill was loaded; its text follows in a separate message."""

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
        """Return the skills that mention the wanted words, else the first ones."""
        words = set(re.findall(r"[^\W_]{3,}", wanted.lower()))
        ranked = sorted((-_count(words, skill), name) for name, skill in self._skills.items())
        similar = [name for hits, name in ranked[:MAX_SUGGESTED] if hits]
        if not similar:
            names = ", ".join(name for _, name in ranked[:MAX_LISTED])
            return f"Skills you can load: {names or 'none'}."
        lines = (
            f"- {name}: {self._skills[name].description[:MAX_DESCRIPTION]}" for name in similar
        )
        return "\n".join(("Similar skills:", *lines))


def _count(words: Collection[str], skill: Skill) -> int:
    """Return how many of the words begin a word of a skill."""
    text = f"{skill.name} {skill.description}".lower()
    return sum(re.search(rf"\b{word}", text) is not None for word in words)


TOOL = SkillTool({})
