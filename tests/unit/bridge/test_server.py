"""Keys, routes, models, limits, failures, and clients that leave."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bridgekit import ROUTES, SERVICE_KEY, WIRES, Bridged, bridged
from trimtab.bridge.protocols import PROTOCOLS, Protocol
from trimtab.bridge.server import Bridge
from trimtab.cli.bridge_session import open_bridge
from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.messages import AssistantMessage, ToolCall
from trimtab.contracts.options import LimitOptions, SessionOptions
from trimtab.contracts.provider import Delta, Reply, Request
from trimtab.providers.http_server import Exchange, Headers, HttpServer, ServerLimits
from trimtab.runtime.runtime import Runtime
from trimtab.testing import ModelServer, Script, ScriptedProvider

HI: dict[str, dict[str, Any]] = {
    "anthropic-messages": {"max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]},
    "openai-chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "openai-responses": {"input": "Hi"},
}
PAIRS = [(route, wire) for route in WIRES for wire in WIRES]


def body_of(route: str, *, stream: bool = False, model: str = "scripted") -> dict[str, Any]:
    return {"model": model, "stream": stream, **HI[route]}


async def send(
    bridge: Bridged, route: str, content: Any = None, *, method: str = "POST", **headers: str
) -> httpx.Response:
    if content is None and method == "POST":
        content = body_of(route)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    async with httpx.AsyncClient(timeout=50) as client:
        given = {"x-api-key": bridge.key, "content-type": "application/json", **headers}
        path = ROUTES.get(route, route)
        return await client.request(method, bridge.url + path, content=data, headers=given)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    body = answer.json()
    return dict(body["error"])


@pytest.mark.proves("AMLMS-02")
async def test_a_key_is_new_each_run_and_no_request_without_it_is_served(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        async with bridged(tmp_path, "openai-chat", ["ok"]) as bridge:
            keys.append(bridge.key)
            for headers in (
                {"x-api-key": ""},
                {"x-api-key": bridge.key[:-1]},
                {"x-api-key": "", "authorization": f"Basic {bridge.key}"},
                {"x-api-key": "", "authorization": "Bearer é"},
            ):
                for path in (
                    *ROUTES.values(),
                    "/v1/models",
                    "/nothing",
                    "/v1/messages/count_tokens",
                ):
                    raw = {name: value.encode() for name, value in headers.items()}
                    answer = await send(bridge, path, {}, **raw)  # type: ignore[arg-type]
                    assert answer.status_code == 401
                    assert answer.headers["x-should-retry"] == "false"
                    assert bridge.key not in answer.text
            assert not bridge.server.requests
            good = await send(
                bridge, "openai-chat", **{"x-api-key": "", "authorization": f"bearer {bridge.key}"}
            )
            assert good.status_code == 200
    assert keys[0] != keys[1]
    assert all(key.startswith("trimtab-lm-") and len(key) == 47 for key in keys)


@pytest.mark.proves("AMLMS-04")
async def test_an_unknown_path_is_refused_in_the_shape_of_a_vendor(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", []) as bridge:
        for path in ("/", "/v1", "/v1/embeddings", "/v1/messages/batches", "/v1/modelsx"):
            answer = await send(bridge, path, {})
            assert answer.status_code == 404
            assert "The bridge has no" in error_of(answer)["message"]
        assert (await send(bridge, "/v1/messages", method="GET")).status_code == 405
        assert (await send(bridge, "/v1/models", {})).status_code == 405
        assert not bridge.server.requests


async def test_the_probes_of_real_clients_are_answered(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", []) as bridge:
        head = await send(bridge, "/", method="HEAD", **{"x-api-key": ""})
        assert head.status_code == 200
        upgrade = {"upgrade": "websocket", "connection": "Upgrade"}
        assert (await send(bridge, "/v1/responses", method="GET", **upgrade)).status_code == 426
        vendor = {"anthropic-version": "2023-06-01"}
        mine = (await send(bridge, "/v1/models", method="GET", **vendor)).json()
        assert (mine["data"][0]["type"], mine["data"][0]["id"]) == ("model", "scripted")
        theirs = (await send(bridge, "/v1/models", method="GET")).json()
        assert (theirs["object"], theirs["data"][0]["object"]) == ("list", "model")
        one = await send(bridge, "/v1/models/scripted", method="GET")
        assert one.json()["id"] == "scripted"
        assert (await send(bridge, "/v1/models/other", method="GET")).status_code == 404


@pytest.mark.parametrize("route", WIRES)
async def test_bad_input_is_a_4xx_of_the_vendor_and_nothing_is_sent_on(
    tmp_path: Path, route: str
) -> None:
    wire = "openai-chat" if route == "anthropic-messages" else "anthropic-messages"
    cases: list[bytes] = [b"", b"{", b"[]", b"\xff\xfe", b'"x"', b"null", b"{" * 100_000]
    cases += [json.dumps({"model": 7}).encode()]
    async with bridged(tmp_path, wire, {"otherwise": "ok"}) as bridge:
        for case in cases:
            answer = await send(bridge, route, case)
            assert answer.status_code == 400, case[:50]
            assert error_of(answer)["message"].endswith(".")
        assert not bridge.server.requests
        for name in ("messages", "tools", "input", "tool_choice", "temperature", "system"):
            for value in (7, "text", [7], [None], {"a": [1]}, [{"role": 5, "content": [3]}]):
                answer = await send(bridge, route, {**body_of(route), name: value})
                assert answer.status_code in (200, 400), (name, value, answer.text)
        for header in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            assert (await send(bridge, route, **header)).status_code == 403
        assert all(call.status != "aborted" for call in bridge.calls)


async def test_a_huge_body_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", []) as bridge:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.bridge.port)
        writer.write(
            b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n{"
        )
        answer = await asyncio.wait_for(reader.read(), 50)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 413")
        assert b'"request_too_large"' in answer
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.bridge.port)
        writer.write(b"\x16\x03\x01\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 50)
        writer.close()
        assert b"400" in answer.split(b"\r\n")[0]


async def test_a_request_that_does_not_arrive_in_time_is_refused() -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.answer(200, b"")

    def refuse(status: int, path: str) -> tuple[bytes, Headers]:
        return f"{status} {path}".encode(), ()

    server = HttpServer(handle, ServerLimits(refuse=refuse, request_seconds=0.05))
    port = await server.start("127.0.0.1", 0)
    try:
        for sent, expected in (
            (b"POST /v1/messages HTTP/1.1\r\nContent-Length: 9\r\n\r\nslow", b"408 /v1/messages"),
            (b"POST", b"408 /"),
            (b"", b""),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 50)
            assert answer.endswith(expected)
            writer.close()
    finally:
        await server.stop()


async def test_the_body_of_a_request_without_the_key_is_not_waited_for(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", []) as bridge:
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.bridge.port)
        writer.write(
            b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n{"
        )
        answer = await asyncio.wait_for(reader.read(), 50)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("admitted", [True, False])
async def test_only_a_connection_that_is_admitted_gets_an_answer(admitted: bool) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.answer(200, b"")

    def refuse(status: int, path: str) -> tuple[bytes, Headers]:
        return f"{status} {path}".encode(), ()

    server = HttpServer(handle, ServerLimits(refuse=refuse, admits=lambda *_: admitted))
    port = await server.start("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        try:
            answer = await asyncio.wait_for(reader.read(), 50)
        except ConnectionResetError:
            answer = b""
        assert answer.startswith(b"HTTP/1.1 200") is admitted
        writer.close()
    finally:
        await server.stop()


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", []) as bridge:
        with pytest.raises(ConfigurationError, match="choose another --port"):
            await bridge.bridge.start(bridge.bridge.port)


@pytest.mark.parametrize(
    ("route", "status", "code"),
    [
        ("anthropic-messages", 402, "billing_error"),
        ("openai-chat", 402, "insufficient_quota"),
        ("openai-responses", 429, "insufficient_quota"),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_used_up_limit_is_what_real_clients_stop_at(
    tmp_path: Path, route: str, status: int, code: str, wire: str
) -> None:
    used = {"text": "Hello.", "usage": {"input": 1900, "output": 100}}
    limits = LimitOptions(max_tokens=2050)
    async with bridged(tmp_path, wire, [used, "never"], limits=limits) as bridge:
        assert (await send(bridge, "openai-chat")).status_code == 200
        answer = await send(bridge, route, body_of(route, stream=True))
        assert answer.status_code == status
        assert code in (error_of(answer).get("type"), error_of(answer).get("code"))
        assert answer.headers["x-should-retry"] == "false"
        assert bridge.server.usage.requests == 1


async def test_a_limit_holds_over_all_clients_at_once(tmp_path: Path) -> None:
    reply = {"text": "x", "usage": {"input": 1000, "output": 1000}, "repeat": "forever"}
    limits = LimitOptions(max_tokens=20_000)
    async with bridged(tmp_path, "openai-chat", [reply], limits=limits) as bridge:
        assert (await send(bridge, "openai-chat")).status_code == 200
        answers = await asyncio.gather(*(send(bridge, route) for route in WIRES * 20))
        good = sum(answer.status_code == 200 for answer in answers)
        spent = bridge.server.usage.input_tokens + bridge.server.usage.output_tokens
    assert 0 < good < 60
    assert spent <= 20_000


@pytest.mark.parametrize(("route", "wire"), PAIRS)
async def test_errors_keep_the_status_and_the_wait_of_the_service(
    tmp_path: Path, route: str, wire: str
) -> None:
    secret = f"Incorrect API key provided: {SERVICE_KEY}"
    replies = [
        {"error": {"status": 429, "headers": {"retry-after": "7"}}},
        {"error": {"status": 401, "message": secret}},
        {"error": {"status": 529}},
        # An idle connection that is closed is tried again once, on a new one.
        {"break": {"how": "close"}},
        {"break": {"how": "close"}},
    ]
    async with bridged(tmp_path, wire, replies) as bridge:
        limited = await send(bridge, route)
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
        refused = await send(bridge, route)
        assert (refused.status_code, refused.headers["x-should-retry"]) == (401, "false")
        assert SERVICE_KEY not in refused.text
        assert (await send(bridge, route)).status_code == 529
        assert (await send(bridge, route, body_of(route, stream=True))).status_code == 502
        assert [call.status for call in bridge.calls] == ["error"] * 4
        assert SERVICE_KEY not in Path(bridge.path).read_text()


ENDS = {
    "anthropic-messages": ("event: error", "message_stop"),
    "openai-chat": ('data: {"error"', "[DONE]"),
    "openai-responses": ("response.failed", "response.completed"),
}


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize(("route", "wire"), PAIRS)
async def test_an_answer_that_breaks_off_ends_as_a_stream_error(
    tmp_path: Path, route: str, wire: str, how: str
) -> None:
    step = {"text": "A long answer. " * 20, "break": {"how": how, "after": 9}}
    async with bridged(tmp_path, wire, [step]) as bridge:
        answer = await send(bridge, route, body_of(route, stream=True))
        failed, whole = ENDS[route]
        assert answer.status_code == 200
        assert failed in answer.text
        assert whole not in answer.text
        (call,) = bridge.calls
        assert call.status == "error"
        assert call.estimated_tokens


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("route", "wire"), PAIRS)
async def test_a_client_that_leaves_ends_the_call_at_the_service(
    tmp_path: Path, route: str, wire: str, stream: bool
) -> None:
    step = {"text": "x" * 100, "break": {"how": "stall", "after": 3 if stream else 0}}
    async with bridged(tmp_path, wire, [step, "next"]) as bridge:
        sending = asyncio.create_task(send(bridge, route, body_of(route, stream=stream)))
        await asyncio.wait_for(bridge.server.wait_for_requests(1), 50)
        sending.cancel()
        await asyncio.wait_for(bridge.server.answered.wait(), 50)
        assert (await send(bridge, route)).status_code == 200
        assert [call.status for call in bridge.calls] == ["aborted", "success"]
        assert bridge.calls[0].estimated_tokens


async def test_maps_fixed_models_and_unknown_names(tmp_path: Path) -> None:
    script = {"replies": ["ok"] * 9, "models": ["scripted", "small-1", "large-1"]}
    async with bridged(tmp_path, "openai-chat", script, maps=["*haiku*=small-1"]) as bridge:
        for name in ("claude-haiku-4-5", "large-1", "claude-opus-4-8", "claude-opus-4-8"):
            asked = body_of("anthropic-messages", model=name)
            assert (await send(bridge, "anthropic-messages", asked)).json()["model"] == name
        models = [sent.json["model"] for sent in bridge.server.requests]
        assert models == ["small-1", "large-1", "scripted", "scripted"]
        (warning,) = bridge.events(SessionWarning)
        assert "'claude-opus-4-8' is unknown, so scripted is used" in warning.message
    async with bridged(tmp_path, "openai-chat", script, strict=True) as bridge:
        for route in WIRES:
            answer = await send(bridge, route, body_of(route, model="claude-opus-4-8"))
            assert answer.status_code == 404
        assert not bridge.server.requests
    async with bridged(tmp_path, "openai-chat", script, model="large-1") as bridge:
        await send(bridge, "openai-chat", body_of("openai-chat", model="small-1"))
        assert bridge.server.requests[0].json["model"] == "large-1"


@pytest.mark.parametrize("wire", WIRES)
async def test_tokens_are_counted_before_a_call(tmp_path: Path, wire: str) -> None:
    async with bridged(tmp_path, wire, []) as bridge:
        body = {"model": "scripted", "messages": [{"role": "user", "content": "word " * 500}]}
        answer = await send(bridge, "/v1/messages/count_tokens?beta=true", body)
        assert answer.status_code == 200
        assert 500 <= answer.json()["input_tokens"] <= 700
        assert not bridge.calls


def text_of(route: str, answer: httpx.Response) -> str:
    """Return the text of an answer, streamed or whole."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        value = answer.json()
        if route == "anthropic-messages":
            return str(value["content"][0]["text"])
        if route == "openai-chat":
            return str(value["choices"][0]["message"]["content"])
        return str(value["output"][0]["content"][0]["text"])
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    events = [json.loads(line) for line in lines]
    if route == "anthropic-messages":
        return "".join(event.get("delta", {}).get("text", "") for event in events)
    if route == "openai-chat":
        choices = [choice for event in events for choice in event["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)
    kind = "response.output_text.delta"
    return "".join(event["delta"] for event in events if event["type"] == kind)


async def test_many_clients_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    rules = [
        {"text": f"answer {number}.", "when": {"last": f"question {number}\\."}}
        for number in range(100)
    ]
    async with bridged(tmp_path, "openai-chat", rules) as bridge:

        async def ask(number: int) -> None:
            route = WIRES[number % 3]
            text = f"question {number}."
            body = body_of(route, stream=number % 2 == 0)
            if route == "openai-responses":
                body["input"] = text
            else:
                body["messages"] = [{"role": "user", "content": text}]
            answer = await send(bridge, route, body)
            assert text_of(route, answer) == f"answer {number}."

        await asyncio.gather(*map(ask, range(100)))
        calls = bridge.calls
        assert len(calls) == 100
        usage = bridge.server.usage
        assert sum(call.input_tokens or 0 for call in calls) == usage.input_tokens
        assert sum(call.output_tokens or 0 for call in calls) == usage.output_tokens


async def test_tokens_of_a_stream_are_known_though_its_client_does_not_want_them(
    tmp_path: Path,
) -> None:
    step = {"text": "Hello there.", "usage": {"input": 11, "output": 3}}
    async with bridged(tmp_path, "openai-chat", [step]) as bridge:
        answer = await send(bridge, "openai-chat", body_of("openai-chat", stream=True))
        assert text_of("openai-chat", answer) == "Hello there."
        assert "usage" not in answer.text
        assert "[DONE]" in answer.text
        (call,) = bridge.calls
        assert (call.input_tokens, call.output_tokens) == (11, 3)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("route", WIRES)
async def test_a_model_without_a_service_answers_on_every_route(
    tmp_path: Path, route: str, stream: bool
) -> None:
    provider = ScriptedProvider(Script.of(["Hello from here."]))
    env = {"HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path / "home"), "TRIMTAB_NO_LOGIN": "1"}
    options = SessionOptions(cwd=str(tmp_path))
    async with (
        ModelServer(Script.of([])) as server,
        open_bridge(Runtime(env=env, provider=provider), options) as (bridge, session),
    ):
        running = Bridged(bridge, session, server)
        answer = await send(running, route, body_of(route, stream=stream))
        assert answer.status_code == 200, answer.text
        assert text_of(route, answer) == "Hello from here."


class Whole:
    """A model that answers with everything at once, as the embedded one does."""

    name = "whole"

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        yield self._reply

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("route", WIRES)
async def test_a_model_that_does_not_stream_answers_a_stream(tmp_path: Path, route: str) -> None:
    call = ToolCall(id="call_1", name="look", arguments='{"at": "it"}')
    bare = ToolCall(id="call_2", name="look", arguments="")
    message = AssistantMessage(text="Hello from here.", tool_calls=(call, bare))
    env = {"HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path / "home"), "TRIMTAB_NO_LOGIN": "1"}
    runtime = Runtime(env=env, provider=Whole(Reply(message=message)))
    options = SessionOptions(cwd=str(tmp_path))
    async with (
        ModelServer(Script.of([])) as server,
        open_bridge(runtime, options) as (bridge, session),
    ):
        running = Bridged(bridge, session, server)
        answer = await send(running, route, body_of(route, stream=True))
        assert text_of(route, answer) == "Hello from here."
        assert "call_1" in answer.text
        assert "call_2" in answer.text


@pytest.mark.proves("AMLMS-06")
async def test_a_protocol_is_added_by_an_entry_of_the_table(tmp_path: Path) -> None:
    added = Protocol(wire="openai-chat", used_up=(402, "no_more"))
    async with bridged(tmp_path, "anthropic-messages", ["Hello."]) as bridge:
        targets, journal = bridge.bridge.targets, bridge.bridge.journal
        protocols = {**PROTOCOLS, "/api/talk": added}
        other = Bridge(targets, LimitOptions(), protocols)
        other.journal = journal
        await other.start()
        try:
            talking = Bridged(other, bridge.session, bridge.server)
            answer = await send(talking, "/api/talk", body_of("openai-chat"))
            assert text_of("openai-chat", answer) == "Hello."
            assert (await send(bridge, "/api/talk", {})).status_code == 404
        finally:
            await other.stop()


async def test_models_of_github_are_served_with_the_headers_it_wants(tmp_path: Path) -> None:
    models = [
        {"id": "claude-x", "supported_endpoints": ["/v1/messages"]},
        {"id": "gpt-x", "supported_endpoints": ["/chat/completions"]},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    async with ModelServer(Script.of({"otherwise": "ok", "models": models})) as server:
        env = {
            "HOME": str(tmp_path),
            "COPILOT_HOME": str(tmp_path / "home"),
            "GH_TOKEN": "gho_token_of_github",
            "COPILOT_API_URL": server.url,
            "COPILOT_DEBUG_GITHUB_API_URL": server.url,
        }
        options = SessionOptions(cwd=str(tmp_path))
        async with open_bridge(Runtime(env=env), options) as (bridge, session):
            running = Bridged(bridge, session, server)
            for name in ("claude-x", "gpt-x"):
                body = {"model": name, "max_tokens": 9, "messages": [message]}
                answer = await send(running, "anthropic-messages", body)
                assert answer.status_code == 200, answer.text
        paths = [sent.path for sent in server.requests]
        assert paths == ["/v1/messages", "/chat/completions"]
        for sent in server.requests:
            assert sent.headers["copilot-vision-request"] == "true"
            assert sent.headers["openai-intent"] == "conversation-agent"
            assert sent.headers["authorization"] == "Bearer gho_token_of_github"
        assert "gho_token" not in Path(running.path).read_text()


@pytest.mark.proves("AMLMS-05")
@pytest.mark.parametrize(("route", "wire"), PAIRS)
async def test_pieces_arrive_while_the_service_still_answers(
    tmp_path: Path, route: str, wire: str
) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    step = {"text": letters, "chunk": 1, "break": {"how": "stall", "after": 10}}
    async with bridged(tmp_path, wire, [step]) as bridge, httpx.AsyncClient(timeout=50) as client:
        asked = client.stream(
            "POST",
            bridge.url + ROUTES[route],
            json=body_of(route, stream=True),
            headers={"x-api-key": bridge.key},
        )
        async with asked as answer:
            lines = answer.aiter_lines()
            while '"b"' not in await anext(lines):
                pass
        assert not bridge.calls
