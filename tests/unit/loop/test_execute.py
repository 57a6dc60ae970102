"""The calls of one reply, and what their events say about them."""

from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.mcp import Origin
from trimtab.contracts.messages import Image
from trimtab.contracts.tool import ToolResult
from trimtab.loop.execute import describe_origin


@pytest.mark.parametrize(("title", "shown"), [("Echo it", "Echo it"), ("", None)])
def test_events_of_a_servers_tool_name_the_server_and_the_tool(
    title: str, shown: str | None
) -> None:
    tool = EchoTool("small-echo")
    tool.origin = Origin(  # type: ignore[attr-defined]
        server="small", tool="echo", transport="stdio", source="user", title=title
    )
    assert describe_origin(tool) == {
        "mcp_server_name": "small",
        "mcp_tool_name": "echo",
        "mcp_transport": "stdio",
        "mcp_config_source": "user",
        "tool_title": shown,
    }


def test_events_of_other_tools_name_no_server() -> None:
    assert describe_origin(EchoTool()) == {}
    assert describe_origin(None) == {}


async def test_images_of_results_follow_all_results_and_are_named_if_they_have_a_name() -> None:
    async def look(args: Any) -> ToolResult:
        name = "a.png" if args["text"] == "named" else None
        return ToolResult(
            text="seen", images=(Image(data="aGk=", mime_type="image/png", name=name),)
        )

    calls = [call(text="named"), call(text="nameless")]
    run = make_run([{"tools": calls}, "done"], "go", tools=[EchoTool(on_run=look)])
    session = await drained(run)
    shown = session.of("user.message")[1:]
    assert [message.content for message in shown] == ["Image file at path a.png", "Image"]
    assert [message.attachments[0]["displayName"] for message in shown] == ["a.png", None]
    types = session.types()
    last = len(types) - 1 - types[::-1].index("tool.execution_complete")
    assert types.index("user.message", 2) > last
