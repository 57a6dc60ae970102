"""The built-in tools by name, in the order in which a model is shown them."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult

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
    "read_agent",
    "write_agent",
    "list_agents",
    "stop_agent",
    "notebook",
    "lsp",
    "web_search",
    "store_memory",
    "read_memories",
    "session_store_sql",
    "report_intent",
    "ask_user",
    "exit_plan_mode",
    "fetch_copilot_cli_documentation",
    "task_complete",
)


class BuiltinTool:
    """A built-in tool whose module is imported at the first call."""

    def __init__(self, spec: ToolSpec, make: Callable[[], Tool] | None = None) -> None:
        self.spec = spec
        self._make = make or (lambda: load_tool(spec.name))
        self._tool: Tool | None = None

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return self._find().access(args, ctx)

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        return await self._find().run(args, ctx)

    def _find(self) -> Tool:
        if self._tool is None:
            self._tool = self._make()
        return self._tool


def builtin_tools(names: Collection[str] | None = None) -> dict[str, Tool]:
    """Return the built-in tools, or those with the given names, without importing them."""
    specs = read_specs()
    return {name: BuiltinTool(specs[name]) for name in NAMES if names is None or name in names}


@cache
def read_specs() -> Mapping[str, ToolSpec]:
    """Return the specifications of the tools from `specs.json`, which `make docs` generates.

    Importing all tools instead would take a twentieth of the time of a start.
    """
    path = os.path.join(os.path.dirname(__file__), "specs.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, ToolSpec])


def load_tool(name: str) -> Tool:
    return cast(Tool, import_module(f"trimtab.tools.{name}.tool").TOOL)


def translate(call: "ToolCall", tools: Mapping[str, Tool]) -> "ToolCall":
    """Return a call of a tool by its name elsewhere as a call of ours; others unchanged."""
    if call.name in tools:
        return call
    from trimtab.tools.aliases import translate_name

    return translate_name(call, tools)


def advise(name: str) -> str:
    """Return what to do instead of calling a tool of another agent that is not supported, or ""."""
    from trimtab.tools.aliases import INSTEAD

    return INSTEAD.get(name, "")
