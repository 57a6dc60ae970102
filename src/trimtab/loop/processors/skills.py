"""Sends skills to the model: when a person writes `/name` or the model calls the skill tool."""

import os
import re
from collections.abc import Callable

import msgspec

from trimtab.contracts.customization import Skill
from trimtab.contracts.events.system import SkillInvoked
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import ToolResult

TOOL = "skill"


class Skills(Processor):
    """`find` returns a skill by name, `read` returns its body."""

    def __init__(self, find: Callable[[str], Skill | None], read: Callable[[Skill], str]) -> None:
        self._find = find
        self._read = read

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source != "user" or not prompt.text.startswith("/"):
            return prompt
        name, _, arguments = prompt.text[1:].partition(" ")
        skill = self._find(name.strip())
        if skill is None:
            return prompt
        body = fill_arguments(self._read(skill), arguments.strip())
        self._record(run, skill, body, "user-invoked")
        text = body if skill.is_command else wrap(skill, body)
        return msgspec.structs.replace(prompt, text=text, display=prompt.display or prompt.text)

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if pending.call.name != TOOL or result.kind != "success":
            return result
        skill = self._find(str(pending.args.get("skill", "")))
        if skill is not None:
            body = self._read(skill)
            self._record(run, skill, body, "agent-invoked")
            run.session.emit(
                UserMessage(
                    content=wrap(skill, body),
                    source=f"skill-{skill.name}",
                    interaction_id=run.interaction_id,
                )
            )
        return result

    def _record(self, run: Run, skill: Skill, body: str, trigger: str) -> None:
        run.session.emit(
            SkillInvoked(
                name=skill.name,
                path=skill.path,
                content=body,
                allowed_tools=None if skill.allowed_tools is None else list(skill.allowed_tools),
                plugin_name=skill.plugin or None,
                description=skill.description,
                disable_model_invocation=not skill.model_invocable,
                source=skill.origin,
                trigger=trigger,
                model=run.agent.model.name,
            )
        )


def wrap(skill: Skill, body: str) -> str:
    """Return the body of a skill with the context that the model needs."""
    base = os.path.dirname(skill.path)
    return (
        f'<skill-context name="{skill.name}">\nBase directory for this skill: {base}\n\n'
        f"{body}\n</skill-context>"
    )


def fill_arguments(body: str, arguments: str) -> str:
    """Replace `$ARGUMENTS`, `$1` and so on; without placeholders, append the arguments."""
    words = arguments.split()

    def fill(match: re.Match[str]) -> str:
        if match[0] == "$ARGUMENTS":
            return arguments
        index = int(match[1] or match[2]) - (0 if match[1] else 1)
        return words[index] if 0 <= index < len(words) else ""

    filled, count = re.subn(r"\$ARGUMENTS\[(\d+)\]|\$ARGUMENTS|\$([1-9])(?!\d)", fill, body)
    return filled if count or not arguments else f"{body}\n\nARGUMENTS: {arguments}"
