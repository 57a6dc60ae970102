"""MCP servers over the official SDK: brought by a client, listed, switched, and asked about."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from copilot import rpc
from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject
from copilot.session import PermissionHandler

import mcp_fixtures
from clikit import Cli
from customizekit import write
from mcpkit import PATIENT, SCRIPT, configure, entry, heard, methods, serving_mcp
from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
RICH: dict[str, Any] = {
    "type": "local",
    "command": sys.executable,
    "args": [mcp_fixtures.__file__],
    "tools": ["*"],
    **PATIENT,
}


@pytest.fixture
def servers() -> dict[str, Any]:
    given = entry()
    return {
        "small": {
            "type": "local",
            "command": given["command"],
            "args": given["args"],
            "tools": ["*"],
            **PATIENT,
        }
    }


async def test_a_server_a_client_brings_is_used_and_asked_about(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    asked: list[Any] = []

    def approve(request: Any, _: Any) -> Any:
        asked.append(request)
        return PermissionDecisionApproveOnce()

    script = [use("small-peek", path=str(sdk.cwd / "made")), DONE]
    async with talking(sdk, script, mcp_servers=servers, on_permission_request=approve) as talk:
        await talk.say("go")
        (end,) = talk.heard.of("tool.execution_complete")
        assert end.result.content == "made"
        (start,) = talk.heard.of("tool.execution_start")
        assert (start.mcp_server_name, start.mcp_tool_name) == ("small", "peek")
    (request,) = asked
    assert (request.server_name, request.tool_name) == ("small", "peek")
    assert (request.tool_title, request.read_only) == ("A look", True)
    assert request.args == {"path": str(sdk.cwd / "made")}


async def test_a_client_that_says_no_is_obeyed(sdk: Sdk, servers: dict[str, Any]) -> None:
    def refuse(request: Any, _: Any) -> Any:
        return PermissionDecisionReject(feedback="not now")

    made = sdk.cwd / "made"
    script = [use("small-peek", path=str(made)), DONE]
    async with talking(sdk, script, mcp_servers=servers, on_permission_request=refuse) as talk:
        await talk.say("go")
        (end,) = talk.heard.of("tool.execution_complete")
        assert "not now" in end.error.message
    assert not made.exists()


async def test_servers_are_listed_with_their_state_and_tools(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    servers["bad"] = {"type": "local", "command": "no-such-program", "args": [], "tools": ["*"]}
    servers["small"]["tools"] = ["echo", "make"]
    async with talking(sdk, [DONE], mcp_servers=servers) as talk:
        await talk.say("hi")
        mcp = talk.session.rpc.mcp
        listed = await mcp.list()
        assert {one.name: one.status.value for one in listed.servers} == {
            "small": "connected",
            "bad": "failed",
        }
        assert listed.host.clients == ["small"]
        assert "no-such-program" in listed.host.failed_servers["bad"].message
        assert listed.host.failed_servers["bad"].timestamp > 1_700_000_000_000
        tools = await mcp.list_tools(rpc.MCPListToolsRequest(server_name="small"))
        assert [one.name for one in tools.tools] == ["echo", "make"]
        with pytest.raises(Exception, match="bad is not connected"):
            await mcp.list_tools(rpc.MCPListToolsRequest(server_name="bad"))


async def test_a_server_that_is_not_there_yet_can_be_switched_off(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    async with talking(sdk, [DONE]) as talk:
        mcp = talk.session.rpc.mcp
        await mcp.disable(rpc.MCPDisableRequest(server_name="small"))
        await mcp.enable(rpc.MCPEnableRequest(server_name="nobody"))
        await mcp.stop_server(rpc.MCPStopServerRequest(server_name="nobody"))
        resumed = await talk.client.resume_session(
            talk.session.session_id,
            mcp_servers=servers,
            on_permission_request=PermissionHandler.approve_all,
        )
        states = {one.name: one.status.value for one in (await mcp.list()).servers}
        assert states == {"small": "disabled"}
        await mcp.enable(rpc.MCPEnableRequest(server_name="small"))
        name = rpc.MCPIsServerRunningRequest(server_name="small")
        assert (await resumed.rpc.mcp.is_server_running(name)).running


async def test_a_server_is_switched_off_and_on_in_a_session(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    script = [DONE, use("small-echo", text="on"), DONE]
    async with talking(sdk, script, mcp_servers=servers) as talk:
        mcp = talk.session.rpc.mcp
        name = rpc.MCPIsServerRunningRequest(server_name="small")
        await mcp.disable(rpc.MCPDisableRequest(server_name="small"))
        await talk.say("hi")
        assert not (await mcp.is_server_running(name)).running
        assert not [one for one in talk.tool_names() if one.startswith("small-")]
        await mcp.enable(rpc.MCPEnableRequest(server_name="small"))
        await talk.say("go")
        assert (await mcp.is_server_running(name)).running
        assert talk.heard.of("tool.execution_complete")[0].result.content == "on"


@pytest.mark.parametrize("meta", [{"trace": "t-1"}, None])
async def test_a_hook_of_a_client_says_what_goes_with_a_call(
    sdk: Sdk, servers: dict[str, Any], tmp_path: Path, meta: dict[str, Any] | None
) -> None:
    log = tmp_path / "server.log"
    servers["small"]["args"] = [*servers["small"]["args"][:2], SCRIPT, "", str(log)]
    asked: list[Any] = []

    async def before(data: Any, _: Any) -> Any:
        asked.append(data)
        return {"metaToUse": meta}

    hooks = {"on_pre_mcp_tool_call": before}
    script = [use("small-echo", text="x"), DONE]
    async with talking(sdk, script, mcp_servers=servers, hooks=hooks) as talk:
        await talk.say("go")
    (data,) = asked
    assert (data["serverName"], data["toolName"]) == ("small", "echo")
    assert data["arguments"] == {"text": "x"}
    call = next(one for one in heard(log) if one.get("method") == "tools/call")
    said = call["params"].get("_meta")
    assert said is None if meta is None else said["trace"] == "t-1"


async def test_servers_connect_before_anything_is_asked_and_may_be_given_short_words(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    servers["small"]["env"] = {"TEST_SECRET": "hunter2"}
    script = [use("small-echo", text="hunter2"), {"text": "It is hunter2."}]
    async with talking(sdk, script, mcp_servers=servers) as talk:
        await talk.heard.until("session.mcp_server_status_changed", 2)
        (listed,) = (await talk.session.rpc.mcp.list()).servers
        assert listed.status.value == "connected"
        assert await talk.say("go") == "It is hunter2."
        assert talk.heard.of("tool.execution_complete")[0].result.content == "hunter2"


async def test_a_resumed_session_has_the_servers_its_client_brings_then(
    sdk: Sdk, servers: dict[str, Any]
) -> None:
    async with talking(sdk, [DONE]) as talk:
        await talk.say("hi")
        before = talk.session.session_id
    async with talking(sdk, [use("small-echo", text="again"), DONE]) as talk:
        session = await talk.client.resume_session(
            before,
            on_permission_request=lambda *_: PermissionDecisionApproveOnce(),
            on_event=talk.heard,
            mcp_servers=servers,
        )
        await session.send_and_wait("go", timeout=50)
        assert talk.heard.of("tool.execution_complete")[-1].result.content == "again"


async def test_files_that_change_are_used_after_a_reload(sdk: Sdk, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    file = sdk.home / "mcp-config.json"
    write(file, json.dumps({"mcpServers": {}}))
    async with talking(sdk, [DONE, DONE], enable_config_discovery=True) as talk:
        await talk.say("hi")
        write(file, json.dumps({"mcpServers": {"small": entry(log=log)}}))
        await talk.session.rpc.mcp.reload()
        await talk.say("again")
        assert "small-echo" in talk.tool_names()
        write(file, json.dumps({"mcpServers": {}}))
        await talk.session.rpc.mcp.reload()
        assert "small" not in [one.name for one in (await talk.session.rpc.mcp.list()).servers]
    assert methods(log)[:2] == ["server/discover", "initialize"]


async def test_resources_and_prompts_of_a_server_are_there_for_clients(sdk: Sdk) -> None:
    async with talking(sdk, [DONE], mcp_servers={"rich": RICH}) as talk:
        mcp = talk.session.rpc.mcp
        listed = await mcp.resources.list(rpc.MCPResourcesListRequest(server_name="rich"))
        assert listed.resources[0].uri == "test://static-text"
        read = await mcp.resources.read(
            rpc.MCPResourcesReadRequest(server_name="rich", uri="test://static-text")
        )
        assert read.contents[0].text == "This is the content of the static text resource."
        templates = await mcp.resources.list_templates(
            rpc.MCPResourcesListTemplatesRequest(server_name="rich")
        )
        assert templates.resource_templates[0].uri_template == "test://template/{id}/data"
        prompts = await mcp.prompts.list(rpc.MCPPromptsListRequest(server_name="rich"))
        assert "test_simple_prompt" in [one.name for one in prompts.prompts]
        got = await mcp.prompts.get(
            rpc.MCPPromptsGetRequest(server_name="rich", prompt_name="test_simple_prompt")
        )
        assert got.messages[0].content["text"] == "This is a simple prompt for testing."
        with pytest.raises(Exception, match="The MCP server rich refused"):
            await mcp.resources.read(
                rpc.MCPResourcesReadRequest(server_name="rich", uri="test://nowhere")
            )


SAMPLE = use("rich-test_sampling", prompt="Say hi")
INTEREST = rpc.RegisterEventInterestParams(event_type="sampling.requested")


@pytest.mark.parametrize("outcome", ["success", "failure", "own", "rejected"])
async def test_a_client_answers_servers_that_ask_for_the_model(sdk: Sdk, outcome: str) -> None:
    made: dict[str, list[Any]] = {
        "success": [{"text": "hi from the model"}],
        "failure": [{"error": {"status": 400, "message": "no"}}],
    }
    replies = [SAMPLE, *made.get(outcome, []), DONE]
    async with talking(sdk, replies, mcp_servers={"rich": RICH}) as talk:
        session = talk.session.rpc
        await session.event_log.register_interest(INTEREST)
        await talk.session.send("go")
        await talk.heard.until("sampling.requested")
        (asked,) = talk.heard.of("sampling.requested")
        assert asked.server_name == "rich"
        response: dict[str, Any] | None = None
        if outcome in ("success", "failure"):
            message = {"role": "user", "content": {"type": "text", "text": "Say hi"}}
            execution = rpc.MCPExecuteSamplingParams(
                mcp_request_id=asked.mcp_request_id,
                request={"messages": [message], "maxTokens": 50},
                request_id="mine",
                server_name="rich",
            )
            done = await session.mcp.execute_sampling(execution)
            assert done.action.value == outcome, done.error
            assert bool(done.error) == (outcome == "failure")
            response = done.result
        elif outcome == "own":
            content = {"type": "text", "text": "hi of my own"}
            response = {"role": "assistant", "content": content, "model": "mine"}
        answer = rpc.UIHandlePendingSamplingRequest(asked.request_id, response)
        assert (await session.ui.handle_pending_sampling(answer)).success
        assert not (await session.ui.handle_pending_sampling(answer)).success
        await talk.heard.until("session.idle")
        told = talk.tool_results()[0]
        assert len(talk.heard.of("sampling.completed")) == 1
    expected = {"success": "LLM response: hi from the model", "own": "LLM response: hi of my own"}
    assert expected.get(outcome, "User rejected") in told


async def test_a_model_call_for_a_server_can_be_cancelled(sdk: Sdk) -> None:
    replies = [{"text": "never", "delay": 60}]
    async with talking(sdk, replies, mcp_servers={"rich": RICH}) as talk:
        mcp = talk.session.rpc.mcp
        message = {"role": "user", "content": {"type": "text", "text": "Say hi"}}
        execution = rpc.MCPExecuteSamplingParams(
            1, {"messages": [message], "maxTokens": 50}, "mine", "rich"
        )
        running = asyncio.ensure_future(mcp.execute_sampling(execution))
        await talk.server.wait_for_requests(1)
        cancel = rpc.MCPCancelSamplingExecutionParams(request_id="mine")
        assert (await mcp.cancel_sampling_execution(cancel)).cancelled
        assert (await running).action.value == "cancelled"
        assert not (await mcp.cancel_sampling_execution(cancel)).cancelled


async def test_a_rule_that_denies_a_server_the_model_holds_for_clients_too(sdk: Sdk) -> None:
    settings = {"permissions": {"deny": ["rich(sampling/createMessage)"]}}
    write(sdk.home / "settings.json", json.dumps(settings))
    async with talking(sdk, [SAMPLE, DONE], mcp_servers={"rich": RICH}) as talk:
        await talk.session.rpc.event_log.register_interest(INTEREST)
        await talk.say("go")
        assert "sampling.requested" not in talk.heard.types
        assert "User rejected" in talk.tool_results()[0]
        message = {"role": "user", "content": {"type": "text", "text": "Say hi"}}
        execution = rpc.MCPExecuteSamplingParams(
            1, {"messages": [message], "maxTokens": 50}, "mine", "rich"
        )
        done = await talk.session.rpc.mcp.execute_sampling(execution)
        assert done.action.value == "failure"


@pytest.mark.parametrize("tool", ["test_elicitation", "test_sampling"])
async def test_questions_of_an_older_server_pass_a_gateway_without_sessions(
    sdk: Sdk, tmp_path: Path, tool: str
) -> None:
    (tmp_path / "behind").mkdir()
    behind = Cli(tmp_path / "behind")
    configure(behind.home / "mcp-config.json", rich=RICH)
    shown: list[Any] = []

    async def fill(context: Any, _: Any = None) -> Any:
        shown.append(context)
        return {"action": "accept", "content": {"username": "ada", "email": "ada@example.org"}}

    asks = use(f"far-{tool}", message="Who are you?", prompt="Say hi")
    answers = [{"text": "hi from the model"}] if tool == "test_sampling" else []
    async with serving_mcp(behind, "gateway", "rich") as url:
        servers = {"far": {"type": "http", "url": url, "tools": ["*"], **PATIENT}}
        async with talking(
            sdk, [asks, *answers, DONE], mcp_servers=servers, on_elicitation_request=fill
        ) as talk:
            await talk.say("go")
            told = talk.tool_results()[0]
    assert ("ada" if tool == "test_elicitation" else "LLM response: hi from the model") in told
    assert len(shown) == (tool == "test_elicitation")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/rich:test_prompt_with_a", ["test_prompt_with_arguments"]),
        ("/rich:test_prompt_with_arguments par", ["paris", "park"]),
        ("/rich:test_prompt_with_arguments arg2=x par", ["paris", "park"]),
        ("/rich:test_prompt_with_arguments arg2=par", ["paris", "park"]),
        ("/rich:test_prompt_with_arguments one two three", []),
        ("/rich:nowhere par", []),
        ("/none:prompt", []),
        ("say par", []),
    ],
)
async def test_prompts_of_a_server_and_their_arguments_are_completed(
    sdk: Sdk, text: str, found: list[str]
) -> None:
    async with talking(sdk, [DONE], mcp_servers={"rich": RICH}) as talk:
        completions = talk.session.rpc.completions
        assert ":" in (await completions.get_trigger_characters()).trigger_characters
        asked = rpc.CompletionsRequestRequest(text=text + " and more", offset=len(text))
        items = (await completions.request(asked)).items
        assert [item.insert_text for item in items] == found
        for item in items:
            assert text[item.range_start : item.range_end] in item.insert_text
