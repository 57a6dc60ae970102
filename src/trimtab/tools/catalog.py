"""The built-in tools by name, in the order in which a model is shown them."""

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from trimtab.contracts.tool import Tool

if TYPE_CHECKING:
    from trimtab.contracts.messages import ToolCall

NAMES = (
    "bash",
    "read_bash",
    "write_bash",
    "stop_bash",
    "list_bash",
    "view",
    "create",
    "edit",
    "apply_patch",
    "web_fetch",
    "skill",
    "sql",
    "grep",
    "rg",
    "glob",
    "task",
    "store_memory",
    "read_memories",
    "session_store_sql",
    "report_intent",
    "ask_user",
    "exit_plan_mode",
    "fetch_copilot_cli_documentation",
    "task_complete",
)


def builtin_tools(names: Collection[str] | None = None) -> dict[str, Tool]:
    """The built-in tools, or those of them that are named. Only their modules are imported."""
    return {
        name: cast(Tool, import_module(f"trimtab.tools.{name}.tool").TOOL)
        for name in NAMES
        if names is None or name in names
    }


def translate(call: "ToolCall", tools: Mapping[str, Tool]) -> "ToolCall":
    """The call as it is, or in our words if its tool goes by another name here."""
    if call.name in tools:
        return call
    from trimtab.tools.aliases import translate_name

    return translate_name(call, tools)


def advise(name: str) -> str:
    """What a model should do that calls a tool it knows from elsewhere and that nothing here is."""
    from trimtab.tools.aliases import INSTEAD

    return INSTEAD.get(name, "")
