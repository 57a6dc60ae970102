"""Which tools a session has: built-in ones, those of clients, and what the lists leave of them."""

from collections.abc import Collection, Mapping, Sequence

from trimtab.contracts.customization import Skill
from trimtab.contracts.run import Mode
from trimtab.contracts.tool import Tool
from trimtab.runtime.options import Client, SessionOptions
from trimtab.tools.catalog import builtin_tools

NEEDS_CLIENT = frozenset(("ask_user", "exit_plan_mode"))


def choose_tools(
    options: SessionOptions,
    client: Client,
    mode: Mode,
    external: Sequence[Tool] = (),
    offered: Collection[str] = (),
    skills: Mapping[str, Skill] = {},
) -> dict[str, Tool]:
    """The tools of a session. `offered` names those that need a client and have one now."""
    tools = {
        name: tool
        for name, tool in builtin_tools().items()
        if name not in NEEDS_CLIENT and (name != "task_complete" or mode == "autopilot")
    }
    if "ask_user" in offered and client.ask_person is not None:
        from trimtab.tools.ask_user.tool import AskUser

        tools["ask_user"] = AskUser(client.ask_person)
    if "exit_plan_mode" in offered and client.ask_approval is not None and mode == "plan":
        from trimtab.tools.exit_plan_mode.tool import ExitPlanMode

        tools["exit_plan_mode"] = ExitPlanMode(client.ask_approval)
    if skills:
        from trimtab.tools.skill.tool import SkillTool

        tools["skill"] = SkillTool(skills)
    return filter_tools(tools, {tool.spec.name: tool for tool in external}, options)


def filter_tools(
    builtin: Mapping[str, Tool], external: Mapping[str, Tool], options: SessionOptions
) -> dict[str, Tool]:
    """What is left when the lists of available and excluded tools have been applied.

    A list names tools plainly or by where they come from: `builtin:bash`, `custom:*`. Excluded
    beats available.
    """

    def matches(name: str, patterns: Collection[str]) -> bool:
        source = "custom" if name in external else "builtin"
        return any(wanted in patterns for wanted in (name, "*", f"{source}:{name}", f"{source}:*"))

    available = options.available_tools
    return {
        name: tool
        for name, tool in {**builtin, **external}.items()
        if (available is None or matches(name, available))
        and not matches(name, options.excluded_tools)
    }
