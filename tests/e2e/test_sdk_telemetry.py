"""OpenTelemetry: spans in a file and at a collector, and the spans of a finished session."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clikit import TRIMTAB
from sdkkit import Sdk, bash, make_tool, talking, use
from trimtab.providers.http_server import Exchange, HttpServer

REPLIES = [use("mine", key="k"), {"text": "Done.", "usage": {"input": 11, "output": 3}}]
AGENTS = [{"name": "writer", "description": "Writes.", "prompt": "Write."}]


async def run_session(sdk: Sdk, telemetry: dict[str, Any], replies: Any = None) -> str:
    """Run one prompt with a tool; return the id of the session."""

    async def before(_: Any, __: Any) -> None:
        return None

    async with talking(
        sdk,
        replies or REPLIES,
        tools=[make_tool("mine", "result of mine")],
        hooks={"on_pre_tool_use": before},
        custom_agents=AGENTS,
        client={"telemetry": telemetry},
    ) as talk:
        assert await talk.say("the prompt") == "Done."
        return str(talk.session.session_id)


def read_all(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read(path: Path) -> list[dict[str, Any]]:
    return [line for line in read_all(path) if line["type"] == "span"]


def named(spans: list[dict[str, Any]], operation: str) -> list[dict[str, Any]]:
    return [span for span in spans if span["attributes"].get("gen_ai.operation.name") == operation]


@pytest.mark.proves("HOOK-19")
async def test_spans_nest_in_a_file_and_tell_what_was_said_if_asked(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    session_id = await run_session(
        sdk,
        {
            "file_path": str(path),
            "exporter_type": "file",
            "source_name": "my-app",
            "capture_content": True,
        },
    )
    spans = read(path)
    assert {span["instrumentationScope"]["name"] for span in spans} == {"my-app"}
    assert all(span["status"]["code"] != 2 for span in spans)
    (root,) = named(spans, "invoke_agent")
    assert root["parentSpanId"] == ""
    assert root["attributes"]["gen_ai.conversation.id"] == session_id
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    first, second = named(spans, "chat")
    assert first["parentSpanId"] == second["parentSpanId"] == root["spanId"]
    assert "the prompt" in first["attributes"]["gen_ai.input.messages"]
    assert "result of mine" in second["attributes"]["gen_ai.input.messages"]
    assert "Done." in second["attributes"]["gen_ai.output.messages"]
    assert second["attributes"]["gen_ai.usage.input_tokens"] == 11
    (tool,) = named(spans, "execute_tool")
    assert tool["parentSpanId"] == root["spanId"]
    assert tool["attributes"]["gen_ai.tool.name"] == "mine"
    assert tool["attributes"]["gen_ai.tool.call.arguments"] == '{"key":"k"}'
    assert tool["attributes"]["gen_ai.tool.call.result"] == "result of mine"
    inside = {span["name"] for span in spans if span["parentSpanId"] == tool["spanId"]}
    assert inside >= {"permission custom-tool"}
    assert "hook preToolUse" in {span["name"] for span in spans}
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)


async def test_metrics_follow_the_spans_in_a_file(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    await run_session(sdk, {"file_path": str(path), "exporter_type": "file", "source_name": "app"})
    metrics = {line["name"]: line for line in read_all(path) if line["type"] == "metric"}
    tokens = metrics["gen_ai.client.token.usage"]
    assert (tokens["unit"], tokens["instrumentationScope"]["name"]) == ("{token}", "app")
    points = {one["attributes"]["gen_ai.token.type"]: one for one in tokens["dataPoints"]}
    assert points["input"]["attributes"]["gen_ai.request.model"] == "scripted"
    assert (points["output"]["count"], points["output"]["min"]) == (2, 3)
    chats = named(read(path), "chat")
    used = [span["attributes"]["gen_ai.usage.input_tokens"] for span in chats]
    assert points["input"]["sum"] == sum(used)
    seconds = metrics["gen_ai.client.operation.duration"]["dataPoints"]
    operations = {one["attributes"]["gen_ai.operation.name"] for one in seconds}
    assert operations == {"chat", "execute_tool", "invoke_agent"}
    assert all(0 <= one["min"] <= one["max"] <= one["sum"] for one in seconds)


async def test_a_setting_of_the_person_switches_the_export_on(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    setting = {"enabled": True, "filePath": str(path), "sourceName": "from-settings"}
    (sdk.home / "settings.json").write_text(json.dumps({"telemetry": setting}))
    async with talking(sdk, [{"text": "Done."}]) as talk:
        await talk.say("the prompt")
        assert "'destination': 'opentelemetry'" in str(talk.heard.events)
    assert {line["instrumentationScope"]["name"] for line in read_all(path)} == {"from-settings"}
    assert "the prompt" not in path.read_text()


async def test_a_repository_cannot_switch_the_export_on(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    setting = {"telemetry": {"enabled": True, "filePath": str(path)}}
    folder = sdk.cwd / ".github" / "copilot"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(setting))
    trusting: Any = {"trust_working_directory": "session", "enable_config_discovery": True}
    async with talking(sdk, [{"text": "Done."}], **trusting) as talk:
        await talk.say("the prompt")
    assert not path.exists()


async def test_what_was_said_is_left_out_unless_asked_for(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    await run_session(sdk, {"file_path": str(path)})
    written = path.read_text()
    assert named(read(path), "chat")
    for text in ("the prompt", "result of mine", "Done."):
        assert text not in written


async def test_a_sub_agent_is_a_span_of_its_own(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    arguments = {"name": "w", "agent_type": "writer", "description": "write", "prompt": "go"}
    start = {"tools": [{"name": "task", "arguments": arguments}]}
    await run_session(
        sdk, {"file_path": str(path)}, [start, {"text": "Written."}, {"text": "Done."}]
    )
    spans = read(path)
    agents = {span["name"]: span for span in named(spans, "invoke_agent")}
    writer = agents["invoke_agent writer"]
    (task,) = [span for span in spans if span["name"] == "execute_tool task"]
    assert writer["parentSpanId"] == task["spanId"]
    assert len([s for s in named(spans, "chat") if s["parentSpanId"] == writer["spanId"]]) == 1


async def test_a_failed_tool_is_a_span_with_an_error(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    replies = [use("view", path="missing.txt"), {"text": "Done."}]
    await run_session(sdk, {"file_path": str(path)}, replies)
    (tool,) = named(read(path), "execute_tool")
    assert tool["status"]["code"] == 2
    assert tool["attributes"]["error.type"]


async def test_nothing_is_written_unless_it_is_switched_on(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    sdk.env["COPILOT_OTEL_FILE_EXPORTER_PATH"] = str(path)
    async with talking(sdk, [{"text": "Done."}]) as talk:
        await talk.say("hi")
    assert not path.exists()


async def test_a_file_that_cannot_be_written_is_a_warning(sdk: Sdk) -> None:
    folder = sdk.home / "traces"
    folder.mkdir()
    telemetry = {"file_path": str(folder)}
    async with talking(sdk, [{"text": "Done."}], client={"telemetry": telemetry}) as talk:
        await talk.say("hi")
        kinds = [warning.warning_type for warning in talk.heard.of("session.warning")]
    assert kinds == ["telemetry"]


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
async def test_a_collector_is_sent_traces_and_metrics(sdk: Sdk, protocol: str) -> None:
    received: dict[str, tuple[str, bytes]] = {}

    async def collect(exchange: Exchange) -> None:
        request = exchange.request
        received[request.path] = (request.headers["content-type"], request.body)
        await exchange.answer(200, b"{}" if protocol == "http/json" else b"")

    collector = HttpServer(collect)
    port = await collector.start("127.0.0.1", 0)
    try:
        await run_session(
            sdk,
            {"otlp_endpoint": f"http://127.0.0.1:{port}", "otlp_protocol": protocol},
        )
    finally:
        await collector.stop()
    assert set(received) == {"/v1/traces", "/v1/metrics"}
    kind = "json" if protocol == "http/json" else "protobuf"
    assert all(kind in content for content, _ in received.values())
    assert b"execute_tool mine" in received["/v1/traces"][1]
    assert b"gen_ai.client.token.usage" in received["/v1/metrics"][1]


async def test_the_spans_of_a_finished_session_come_from_its_log(sdk: Sdk) -> None:
    path = sdk.home / "traces.jsonl"
    session_id = await run_session(sdk, {"file_path": str(path)})
    process = await asyncio.create_subprocess_exec(
        TRIMTAB,
        *("sessions", "export", session_id, "--format", "otel"),
        env={**sdk.env, "COPILOT_HOME": str(sdk.home)},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    later = [json.loads(line) for line in out.decode().splitlines()]
    ids = {span["spanId"]: span["name"] for span in later}
    assert ids == {span["spanId"]: span["name"] for span in read(path)}


@pytest.mark.parametrize(
    ("telemetry", "words"),
    [
        ({"exporter_type": "file"}, "COPILOT_OTEL_FILE_EXPORTER_PATH"),
        ({"exporter_type": "carrier-pigeon"}, "file or otlp-http"),
        ({"otlp_protocol": "grpc"}, "http/protobuf or http/json"),
    ],
)
async def test_settings_that_make_no_sense_are_named(
    sdk: Sdk, telemetry: dict[str, Any], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        async with talking(sdk, [bash("true")], client={"telemetry": telemetry}):
            pass


async def test_a_slow_collector_is_sent_everything_although_the_client_ends_the_program(
    sdk: Sdk,
) -> None:
    sdk.transport = "tcp"  # the client terminates such a program a second after it shut down
    received: list[str] = []

    async def collect(exchange: Exchange) -> None:
        received.append(exchange.request.path)
        await asyncio.sleep(1.5)
        await exchange.answer(200, b"")

    collector = HttpServer(collect)
    port = await collector.start("127.0.0.1", 0)
    try:
        await run_session(sdk, {"otlp_endpoint": f"http://127.0.0.1:{port}"})
    finally:
        await collector.stop()
    assert {"/v1/traces", "/v1/metrics"} <= set(received)


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
async def test_a_client_that_asks_is_told_of_starts_calls_and_ends(
    sdk: Sdk, transport: str
) -> None:
    sdk.transport = transport
    told: list[Any] = []
    client = {"on_github_telemetry": told.append}
    async with talking(sdk, [bash("echo said"), {"text": "Done."}], client=client) as talk:
        await talk.say("the prompt")
        session_id = talk.session.session_id
        await talk.session.disconnect()
    kinds = [one.event.kind for one in told]
    assert kinds[0] == "session_start"
    assert kinds[-1] == "session_shutdown"
    assert {"user_message", "assistant_usage", "assistant_message", "session_idle"} <= set(kinds)
    assert {one.session_id for one in told} == {session_id}
    assert not any(one.restricted for one in told)
    start = told[0].event
    assert start.properties["selected_model"] == "scripted"
    assert start.properties["is_git_repo"] == "false"
    (call,) = [one.event for one in told if one.event.kind == "tool_call_executed"]
    assert (call.properties["tool_name"], call.properties["result_type"]) == ("bash", "SUCCESS")
    assert "said" not in str(told)


async def test_a_client_that_does_not_ask_is_sent_no_telemetry(sdk: Sdk) -> None:
    told: list[Any] = []
    async with talking(sdk, [{"text": "Done."}]) as talk:
        handlers = talk.client._client.notification_method_handlers
        handlers["gitHubTelemetry.event"] = told.append
        await talk.say("the prompt")
        await talk.session.disconnect()
    assert told == []
