"""The calls of one reply, and what their events say about them."""

import pytest

from loopkit import EchoTool
from trimtab.contracts.mcp import Origin
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
