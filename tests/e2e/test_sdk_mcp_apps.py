"""MCP Apps: a client shows interfaces of servers; and servers that clients start by themselves."""

from pathlib import Path
from typing import Any

import pytest
from copilot import rpc

from mcpkit import entry, heard
from sdkkit import Sdk, Talk, talking, use

DONE = {"text": "Done."}


def local(mode: str = "", log: Path | None = None) -> dict[str, Any]:
    return entry(mode, log, tools=["*"])


def with_apps(sdk: Sdk, log: Path, *, on: bool = True) -> dict[str, Any]:
    if on:
        sdk.env["COPILOT_MCP_APPS"] = "true"
    return {"mcp_servers": {"panel": local("apps", log)}, "enable_mcp_apps": True}


async def call_from(talk: Talk, origin: str, tool: str, **arguments: Any) -> Any:
    return await talk.session.rpc.mcp.apps.call_tool(
        rpc.MCPAppsCallToolRequest(
            origin_server_name=origin, server_name="panel", tool_name=tool, arguments=arguments
        )
    )


async def test_a_servers_interface_lists_and_calls_the_tools_that_are_for_it(
    sdk: Sdk, tmp_path: Path
) -> None:
    async with talking(sdk, [DONE], **with_apps(sdk, tmp_path / "log")) as talk:
        assert talk.session.capabilities["ui"]["mcpApps"] is True
        apps = talk.session.rpc.mcp.apps
        listed = await apps.list_tools(
            rpc.MCPAppsListToolsRequest(origin_server_name="panel", server_name="panel")
        )
        names = [tool["name"] for tool in listed.tools]
        assert {"echo", "shared", "button"} <= set(names)
        assert "secret" not in names
        answer = await call_from(talk, "panel", "echo", text="ahoy")
        assert answer["content"] == [{"type": "text", "text": "ahoy"}]
        (done,) = talk.heard.of("mcp_app.tool_call_complete")
        assert (done.tool_name, done.success, done.arguments) == ("echo", True, {"text": "ahoy"})
        page = await apps.read_resource(
            rpc.MCPAppsReadResourceRequest(server_name="panel", uri="ui://panel/main")
        )
        assert (page.contents[0].text, page.contents[0].uri) == ("<p>", "ui://panel/main")
        found = await apps.diagnose(rpc.MCPAppsDiagnoseRequest(server_name="panel"))
        assert found.capability.advertised
        assert found.server.tools_with_ui_meta == 3
        await talk.say("go")
        shown = {name.partition("-")[2] for name in talk.tool_names() if name.startswith("panel-")}
        assert {"shared", "secret"} <= shown
        assert "button" not in shown
    (greeting,) = [one for one in heard(tmp_path / "log") if one["method"] == "initialize"][:1]
    extensions = greeting["params"]["capabilities"]["extensions"]
    assert extensions["io.modelcontextprotocol/ui"]["mimeTypes"] == ["text/html;profile=mcp-app"]


REFUSED = {
    "another server's interface": ("other", "shared", "Cross-server MCP App tools/call"),
    "no origin": ("", "shared", "originServerName is required"),
    "a tool for the model only": ("panel", "secret", "not callable from MCP Apps"),
    "an unknown tool": ("panel", "anchor", "MCP tool not found on panel: anchor"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_an_interface_may_not_call(sdk: Sdk, tmp_path: Path, case: str) -> None:
    origin, tool, message = REFUSED[case]
    async with talking(sdk, [], **with_apps(sdk, tmp_path / "log")) as talk:
        with pytest.raises(Exception, match=message):
            await call_from(talk, origin, tool)


async def test_without_the_feature_a_session_says_that_it_has_no_interfaces(
    sdk: Sdk, tmp_path: Path
) -> None:
    async with talking(sdk, [DONE], **with_apps(sdk, tmp_path / "log", on=False)) as talk:
        assert talk.session.capabilities["ui"]["mcpApps"] is False
        with pytest.raises(Exception, match='The "mcp-apps" capability is not available'):
            await call_from(talk, "panel", "shared")
        apps = talk.session.rpc.mcp.apps
        found = await apps.diagnose(rpc.MCPAppsDiagnoseRequest(server_name="panel"))
        assert not found.capability.session_has_mcp_apps
        assert found.server.connected
        nothing = await apps.diagnose(rpc.MCPAppsDiagnoseRequest(server_name="missing"))
        assert not nothing.server.connected
        await talk.say("go")
        assert "panel-button" in talk.tool_names()


async def test_a_client_starts_a_server_with_a_configuration_of_its_own(
    sdk: Sdk, tmp_path: Path
) -> None:
    replies = [use("late-echo", text="aye"), DONE]
    async with talking(sdk, replies) as talk:
        mcp = talk.session.rpc.mcp

        async def runs() -> bool:
            asked = rpc.MCPIsServerRunningRequest(server_name="late")
            return bool((await mcp.is_server_running(asked)).running)

        config = rpc.MCPSerializableServerConfig.from_dict(local("", tmp_path / "log"))
        await mcp.start_server(rpc.MCPStartServerRequest(server_name="late", config=config))
        assert await runs()
        assert await talk.say("go") == "Done."
        assert talk.tool_results() == ["aye"]
        await mcp.stop_server(rpc.MCPStopServerRequest(server_name="late"))
        assert not await runs()
        await mcp.start_server(rpc.MCPStartServerRequest(server_name="late"))
        assert await runs()
        broken = rpc.MCPSerializableServerConfig.from_dict({**local(), "args": ["/nowhere"]})
        with pytest.raises(Exception, match="late could not be started"):
            await mcp.restart_server(rpc.MCPRestartServerRequest(server_name="late", config=broken))
        assert not await runs()
