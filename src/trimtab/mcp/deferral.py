"""Hides the schemas of many tools behind a search, so that they do not fill the window."""

import re
from collections.abc import Callable, Collection, Sequence

import msgspec

from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import Access, Args, Tool, ToolContext, ToolResult
from trimtab.mcp.tool import McpTool

SHARE = 0.02
"""The share of the window that schemas may take before they are hidden."""
DEFAULT_WINDOW = 128_000
BYTES_PER_TOKEN = 4
MAX_FOUND = 10
MAX_NAMES_LENGTH = 8000
MAX_SUMMARY_LENGTH = 200
NAME = "search_mcp_tools"


def choose_shown(
    tools: Sequence[McpTool], window: int | None, found: set[str], on_found: Callable[[], None]
) -> list[Tool]:
    """Return the tools of servers; if they are large, most are hidden until they are searched.

    `found` are the names of tools that were found before; a search adds to them. Servers whose
    entry says `deferTools: never` are always shown.
    """
    hidden = [tool for tool in tools if tool.defers]
    size = sum(len(msgspec.json.encode(tool.spec)) for tool in hidden)
    if size <= (window or DEFAULT_WINDOW) * SHARE * BYTES_PER_TOKEN:
        return list(tools)
    for tool in hidden:
        tool.deferred = tool.spec.name not in found
    left = [tool for tool in hidden if tool.deferred]
    return [*tools, ToolSearch(left, found, on_found)] if left else list(tools)


class ToolSearch:
    """Finds hidden tools by words; the model is shown those that it found from then on."""

    def __init__(
        self, tools: Sequence[McpTool], found: set[str], on_found: Callable[[], None]
    ) -> None:
        self._tools = tools
        self._found = found
        self._on_found = on_found
        self.spec = ToolSpec(
            name=NAME,
            description=(
                "Find tools of MCP servers by words of their names and descriptions. The tools "
                "that are found can be called from then on. Search before you conclude that "
                f"something cannot be done. There are: {_list_names(tools)}"
            ),
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words, or the name of a tool"}
                },
                "required": ["query"],
            },
        )

    def access(self, args: Args, ctx: ToolContext) -> Sequence[Access]:
        return [Access(kind="none", mutates=False)]

    async def run(self, args: Args, ctx: ToolContext) -> ToolResult:
        best = find_tools(self._tools, str(args["query"]))
        if not best:
            return ToolResult(
                text="No tool matches; search with other words, or the name of a server.",
                kind="failure",
            )
        self._found.update(tool.spec.name for tool in best)
        self._on_found()
        lines = [
            f"- {tool.spec.name}: {tool.spec.description.strip()[:MAX_SUMMARY_LENGTH]}"
            for tool in best
        ]
        return ToolResult(text="\n".join(("You can call these tools now:", *lines)))


def find_tools(tools: Sequence[McpTool], query: str) -> list[McpTool]:
    """Return the tools that fit a query best."""
    words = set(re.findall(r"[^\W_]+", query.lower()))
    ranked = sorted(
        ((_rate(tool, words, query), index) for index, tool in enumerate(tools)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    return [tools[index] for rate, index in ranked[:MAX_FOUND] if rate]


def _rate(tool: McpTool, words: Collection[str], query: str) -> int:
    name, text = tool.spec.name.lower(), tool.spec.description.lower()
    rate = 100 * (query.strip().lower() in (name, tool.origin.tool.lower()))
    return rate + sum(3 * (word in name) + (word in text) for word in words)


def _list_names(tools: Sequence[McpTool]) -> str:
    names = [tool.spec.name for tool in tools]
    text = ", ".join(names)
    if len(text) <= MAX_NAMES_LENGTH:
        return f"{text}."
    shown = text[:MAX_NAMES_LENGTH].rpartition(", ")[0]
    return f"{shown}, and {len(names) - shown.count(', ') - 1} more."
