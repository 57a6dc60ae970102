"""Sends skills to the model: when a person writes `/name` or the model calls the skill tool."""

import os
import re
from collections.abc import Callable
from typing import Protocol

import msgspec

from trimtab.contracts.customization import Skill, SkillTools
from trimtab.contracts.events.system import SkillInvoked
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.mcp import origin_of
from trimtab.contracts.processor import PendingCall, Processor
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Tool, ToolResult

TOOL = "skill"
ALWAYS = frozenset((TOOL, "task_complete", "ask_user", "exit_plan_mode", "report_intent", "sql"))
"""Tools that every skill may use: to load others, to ask, to end, and to keep its list."""


class FindTools(Protocol):
    def __call__(self, skill: Skill, *, by_person: bool) -> SkillTools: ...


class Skills(Processor):
    """`find` returns a skill by name, `read` its body, `tools` its limits and what it allows.

    A skill is at work until the next prompt of a person. Several add up.
    """

    def __init__(
        self,
        find: Callable[[str], Skill | None],
        read: Callable[[Skill], str],
        tools: "FindTools | None" = None,
    ) -> None:
        self._find = find
        self._read = read
        self._tools = tools
        self._at_work: dict[str, list[SkillTools]] = {}
        """The skills at work, by the id of their agent."""

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source == "user":
            self._at_work.pop(run.agent.id, None)
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

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        caller = "" if run.agent.caller_id == run.session.id else run.agent.caller_id
        agents = {run.agent.id, caller}
        active = [skill for agent in agents for skill in self._at_work.get(agent, ())]
        if not active:
            return pending
        held = [skill for skill in active if skill.tools is not None]
        if held and not any(is_allowed(pending.tool, skill) for skill in held):
            allowed = ", ".join(sorted({name for skill in held for name in skill.tools or ()}))
            names = " and ".join(skill.name for skill in held)
            text = f"The call was not made: the skill {names} may use only {allowed}."
            return ToolResult(text=text, kind="denied")
        rules = tuple(rule for skill in active for rule in skill.rules)
        return msgspec.structs.replace(pending, granted=(*pending.granted, *rules))

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
        if self._tools is not None and skill.allowed_tools is not None:
            tools = self._tools(skill, by_person=trigger == "user-invoked")
            self._at_work.setdefault(run.agent.id, []).append(tools)
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


def is_allowed(tool: Tool, skill: SkillTools) -> bool:
    """Return True if a skill may use a tool: by any of its names, or because every skill may."""
    origin = origin_of(tool)
    names = {tool.spec.name, *(origin.names if origin is not None else ())}
    return not names.isdisjoint(ALWAYS) or skill.tools is None or not names.isdisjoint(skill.tools)


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
