import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from pathlib import Path

import msgspec
import pytest

from netkit import Listener, listening
from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.contracts.messages import UserMessage
from trimtab.contracts.provider import Delta, Reply, Request, TextDelta, Waiting
from trimtab.providers.connection import Timeouts
from trimtab.providers.endpoints import connect, from_environment
from trimtab.providers.http import HttpClient
from trimtab.providers.service import Service
from trimtab.testing import ModelServer, Script

REQUEST = Request(model="m-1", system="s", messages=[UserMessage.of("hi")])


def service(url: str, **variables: str) -> Service:
    environment = {f"COPILOT_PROVIDER_{name}": value for name, value in variables.items()}
    choice = from_environment({"COPILOT_PROVIDER_BASE_URL": url, **environment})
    assert choice is not None
    return connect(choice, env={})


async def ask(provider: Service, request: Request = REQUEST) -> tuple[list[Delta], Reply]:
    items = [item async for item in provider.stream(request)]
    *deltas, reply = items
    assert isinstance(reply, Reply)
    return [delta for delta in deltas if not isinstance(delta, Reply)], reply


async def anext_reply(stream: AsyncGenerator[Delta | Reply, None]) -> Reply:
    return next(iter([item async for item in stream if isinstance(item, Reply)]))


WIRES = [
    {"TYPE": "openai"},
    {"TYPE": "openai", "WIRE_API": "responses"},
    {"TYPE": "anthropic"},
    {"TYPE": "azure", "AZURE_API_VERSION": "2024-10-21"},
]


@pytest.mark.parametrize("variables", WIRES)
@pytest.mark.parametrize("stream", [True, False])
async def test_each_wire_works_streamed_and_whole(variables: dict[str, str], stream: bool) -> None:
    script = Script.of(
        [{"text": "Let me look.", "reasoning": "Hm.", "tools": [{"bash": {"command": "ls"}}, "x"]}]
    )
    async with ModelServer(script) as server:
        provider = service(server.url, **variables)
        deltas, reply = await ask(provider, msgspec.structs.replace(REQUEST, stream=stream))
        await provider.aclose()
        message = reply.message
        assert message.text == "Let me look."
        assert message.reasoning is not None
        assert message.reasoning.text == "Hm."
        assert [(call.name, call.arguments) for call in message.tool_calls] == [
            ("bash", '{"command":"ls"}'),
            ("x", "{}"),
        ]
        assert reply.finish_reason == "tool_calls"
        assert reply.model == "m-1"
        assert reply.request_id == "scripted-1"
        assert reply.usage.input_tokens == server.usage.input_tokens
        shown = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        assert shown == ("Let me look." if stream else "")


async def test_headers_of_choice_and_request_are_sent_and_the_wire_model_replaces_the_id() -> None:
    async with ModelServer(Script.of(["ok"])) as server:
        provider = service(
            server.url, API_KEY="secret", HEADERS="X-Team: blue\nUser-Agent: mine", WIRE_MODEL="w"
        )
        await ask(provider, msgspec.structs.replace(REQUEST, headers={"X-Initiator": "agent"}))
        await provider.aclose()
        (seen,) = server.requests
        assert seen.headers["authorization"] == "Bearer secret"
        assert seen.headers["x-team"] == "blue"
        assert seen.headers["user-agent"] == "mine"
        assert seen.headers["x-initiator"] == "agent"
        assert seen.json["model"] == "w"


async def test_a_key_command_is_run_for_every_request(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    command = f"echo x >> {counter}; wc -l < {counter}"
    async with ModelServer(Script.of([{"text": "ok", "repeat": 2}])) as server:
        provider = service(server.url, API_KEY_COMMAND=command)
        await ask(provider)
        await ask(provider)
        await provider.aclose()
        keys = [seen.headers["authorization"].split() for seen in server.requests]
        assert keys == [["Bearer", "1"], ["Bearer", "2"]]


async def test_an_error_answer_is_raised_without_the_key_in_it() -> None:
    failure = {"status": 401, "message": "Incorrect API key: top-secret-key"}
    script = Script.of(
        [{"error": failure}, {"error": {"status": 429, "headers": {"retry-after": "2"}}}]
    )
    async with ModelServer(script) as server:
        provider = service(server.url, API_KEY="top-secret-key")
        with pytest.raises(AuthenticationError) as refused:
            await ask(provider)
        assert "top-secret-key" not in refused.value.message
        with pytest.raises(ModelError) as limited:
            await ask(provider)
        assert (limited.value.category, limited.value.retry_after) == ("rate_limit", 2.0)
        await provider.aclose()


@pytest.mark.parametrize("variables", WIRES[:3])
@pytest.mark.parametrize("how", ["close", "reset", "half"])
async def test_a_stream_that_breaks_gives_its_deltas_and_then_an_error(
    variables: dict[str, str], how: str
) -> None:
    script = Script.of(
        [
            {
                "text": "word " * 40,
                "tools": [{"bash": {"command": "ls"}}],
                "break": {"how": how, "after": 8},
            }
        ]
    )
    async with ModelServer(script) as server:
        provider = service(server.url, **variables)
        stream = provider.stream(REQUEST)
        if how != "reset":
            assert not isinstance(await asyncio.wait_for(anext(stream), 60), Reply)
        with pytest.raises(ModelError) as caught:
            await asyncio.wait_for(anext_reply(stream), 60)
        assert caught.value.category == "transport"
        await provider.aclose()


async def test_closing_the_stream_early_ends_the_request() -> None:
    script = Script.of([{"text": "word " * 40, "break": {"how": "stall", "after": 5}}, "next"])
    async with ModelServer(script) as server:
        provider = service(server.url)
        stream = provider.stream(REQUEST)
        assert isinstance(await anext(stream), TextDelta)
        await stream.aclose()
        _, reply = await ask(provider)
        assert reply.message.text == "next"
        await provider.aclose()


async def serve_raw(answer: bytes, request: Request = REQUEST) -> tuple[list[Delta], Reply]:
    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        writer.write(answer)
        await reader.read()

    async with listening(converse) as server:
        provider = service(server.url)
        try:
            return await asyncio.wait_for(ask(provider, request), 60)
        finally:
            await provider.aclose()


WHOLE = b'{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}'
EVENTS = (
    b'data: {"choices":[{"delta":{"content":"streamed"}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
)


async def test_a_whole_answer_to_a_streamed_request_is_read_all_the_same() -> None:
    for head in (b"Content-Type: application/json\r\n", b""):
        answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (head, len(WHOLE))
        deltas, reply = await serve_raw(answer + WHOLE)
        assert (deltas, reply.message.text) == ([], "whole")


async def test_a_streamed_answer_to_a_whole_request_gives_no_deltas() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    plain = msgspec.structs.replace(REQUEST, stream=False)
    deltas, reply = await serve_raw(head % len(EVENTS) + EVENTS, plain)
    assert (deltas, reply.message.text) == ([], "streamed")


async def test_the_reply_does_not_wait_for_a_connection_left_open_after_the_end() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = EVENTS + b"data: [DONE]\n\n"
    deltas, reply = await serve_raw(head + b"%x\r\n%b\r\n" % (len(body), body))
    assert (len(deltas), reply.message.text) == (1, "streamed")


async def test_a_web_page_in_place_of_an_answer_is_an_error() -> None:
    page = b"<html>Please log in to the network</html>"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
    with pytest.raises(ModelError, match="check that the address"):
        await serve_raw(head % len(page) + page)


async def test_connections_are_used_again_after_streams() -> None:
    async with ModelServer(Script.of([{"text": "x" * 500, "repeat": 5}])) as server:
        provider = service(server.url)
        for _ in range(5):
            await ask(provider)
        assert server.connections == 1
        await provider.aclose()


async def test_conversations_side_by_side_do_not_mix() -> None:
    async with ModelServer(Script.of([{"text": "ok", "repeat": "forever"}])) as server:
        provider = service(server.url)
        conversations = [[UserMessage.of(f"c{n}")] for n in range(12)]
        for turn in range(3):
            for messages in conversations:
                messages.append(UserMessage.of(f"t{turn}"))
                await ask(provider, msgspec.structs.replace(REQUEST, messages=messages))
        await provider.aclose()
        for number, seen in enumerate(server.requests):
            texts = [message["content"] for message in json.loads(seen.body)["messages"][1:]]
            turn, conversation = divmod(number, 12)
            assert texts == [f"c{conversation}", *(f"t{number}" for number in range(turn + 1))]


async def test_a_reply_that_is_taken_and_left_counts_as_a_success() -> None:
    """The loop asks for nothing after the reply; failures before it are forgotten all the same."""
    bad = {"error": {"status": 500}}
    async with ModelServer(Script.of([bad, bad, bad, "ok"] * 3)) as server:
        provider = service(server.base_url)
        waits = 0
        for _ in range(12):
            async with aclosing(provider.stream(REQUEST)) as stream:
                try:
                    async for item in stream:
                        waits += isinstance(item, Waiting)
                        if isinstance(item, Reply):
                            break
                except ModelError:
                    continue
        await provider.aclose()
    assert waits == 0


@pytest.mark.parametrize(
    "settings", [{}, {"WIRE_API": "responses"}, {"TYPE": "anthropic"}], ids=["chat", "r", "m"]
)
@pytest.mark.parametrize(
    "piece",
    [
        b": still here\n\n",
        b": " + b"x" * 3000 + b"\n\n",
        b"\n",
        b"data:\n\n",
        b"retry: 10\n\n",
        b'event: ping\ndata: {"type": "ping"}\n\n',
        b'data: {"type": "ping", "at": %d}\n\n',
        b'data: {"choices": []}\n\n',
        b"data: {}\n\n",
    ],
)
async def test_a_stream_of_pings_counts_as_silence(piece: bytes, settings: dict[str, str]) -> None:
    """A proxy that sent a comment or a ping now and then kept a dead call open without end."""
    numbers = count()

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while not writer.is_closing():
            writer.write(piece % next(numbers) if b"%d" in piece else piece)
            await writer.drain()
            await asyncio.wait([asyncio.ensure_future(reader.read(1 << 16))], timeout=0.02)

    async with listening(converse) as listener:
        choice = from_environment(
            {
                "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{listener.port}",
                **{f"COPILOT_PROVIDER_{name}": value for name, value in settings.items()},
            }
        )
        assert choice is not None
        http = HttpClient({}, timeouts=Timeouts(first_byte=0.2, between_bytes=0.2))
        provider = Service(choice, http)
        with pytest.raises(ModelError, match="sent nothing but pings"):
            async with asyncio.timeout(50):
                await ask(provider)
        await provider.aclose()


async def test_an_answer_without_end_is_given_up() -> None:
    """It filled the memory until the deadline."""
    text = "x" * (1 << 20)
    event = b'data: {"choices":[{"index":0,"delta":{"content":"","x":"%b"}}]}\n\n' % text.encode()

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while not writer.is_closing():
            writer.write(event)
            await writer.drain()

    async with listening(converse) as listener:
        choice = from_environment(
            {"COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{listener.port}"}
        )
        assert choice is not None
        provider = Service(choice, HttpClient({}))
        with pytest.raises(ModelError, match="without an end"):
            async with asyncio.timeout(50):
                await ask(provider)
        await provider.aclose()
