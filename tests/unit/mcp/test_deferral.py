"""Many tools hide behind a search, and cost next to nothing until they are found."""

from typing import Any, cast

import msgspec

from mcpkit import Context, keep, server
from trimtab.contracts.mcp import Origin
from trimtab.contracts.provider import ToolSpec
from trimtab.contracts.tool import ToolContext
from trimtab.mcp.deferral import NAME, choose_shown
from trimtab.mcp.tool import McpTool, ToolSupport
from trimtab.providers.tokens import counter_for

WINDOW = 200_000


async def nothing(*_: Any) -> Any:
    return {}


def make(number: int, **extra: Any) -> McpTool:
    spec = ToolSpec(
        name=f"big-tool_{number}",
        description=f"Handles order number {number} of the warehouse. " + "More words. " * 20,
        parameters={
            "type": "object",
            "properties": {
                f"field{index}": {"type": "string", "description": "A long text about it."}
                for index in range(8)
            },
        },
    )
    origin = Origin(server="big", tool=f"tool_{number}", transport="stdio")
    return McpTool(spec, origin, server(extra=extra), nothing, ToolSupport(limit=keep))


def shown(tools: Any) -> list[ToolSpec]:
    return [tool.spec for tool in tools if not getattr(tool, "deferred", False)]


def test_a_few_tools_are_all_shown() -> None:
    assert len(shown(choose_shown([make(1), make(2)], WINDOW, set(), lambda: None))) == 2


def test_200_tools_cost_at_most_three_percent_of_the_window() -> None:
    tools = [make(number) for number in range(200)]
    offered = choose_shown(tools, WINDOW, set(), lambda: None)
    assert len(offered) == 201  # all of them can be called
    (search,) = shown(offered)
    assert search.name == NAME
    assert counter_for("gpt-5").text(msgspec.json.encode(search).decode()) <= 0.03 * WINDOW


async def test_a_tool_that_is_found_is_shown_from_then_on() -> None:
    tools = [make(number) for number in range(200)]
    found: set[str] = set()
    calls: list[int] = []
    *_, search = choose_shown(tools, WINDOW, found, lambda: calls.append(1))
    context = cast(ToolContext, Context(lambda _: None))
    result = await search.run({"query": "tool_137"}, context)
    assert "- big-tool_137: Handles order number 137" in result.text
    assert calls == [1]
    names = [spec.name for spec in shown(choose_shown(tools, WINDOW, found, lambda: None))]
    assert "big-tool_137" in names
    assert len(names) <= 11
    nothing_found = await search.run({"query": "zebra"}, context)
    assert nothing_found.kind == "failure"


def test_a_server_that_never_defers_is_shown() -> None:
    tools = [make(number, deferTools="never") for number in range(200)]
    assert len(shown(choose_shown(tools, WINDOW, set(), lambda: None))) == 200
