import asyncio
import json
import time
from typing import Any

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.testing import ModelServer, Script


async def exchange(server: ModelServer, raw: bytes, *, half: bool = False) -> bytes:
    """Send raw bytes and read until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(raw)
    if half:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()
        await writer.wait_closed()


def http(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{headers}\r\n".encode() + body


async def get_json(server: ModelServer, path: str) -> Any:
    answer = await exchange(server, http("GET", path))
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def call(
    server: ModelServer, path: str = "/v1/chat/completions", **body: Any
) -> tuple[int, str]:
    data = json.dumps({"model": "m", "messages": [], **body}).encode()
    head, _, rest = (await exchange(server, http("POST", path, data))).partition(b"\r\n\r\n")
    return int(head.split()[1]), rest.decode()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/chat/completions", "choices"),
        ("/chat/completions", "choices"),
        ("/openai/deployments/d/chat/completions?api-version=1", "choices"),
        ("/v1/responses", "output"),
        ("/responses", "output"),
        ("/v1/messages", "content"),
    ],
)
async def test_every_wire_has_its_paths(path: str, field: str) -> None:
    async with ModelServer(Script.of(["hello"])) as server:
        status, body = await call(server, path)
        assert status == 200
        assert field in json.loads(body)
        assert "hello" in body


async def test_models_and_the_user_can_be_asked_for() -> None:
    async with ModelServer(Script.of({"models": ["a", "b"]})) as server:
        for path in ("/models", "/v1/models"):
            models = await get_json(server, path)
            assert [model["id"] for model in models["data"]] == ["a", "b"]
        user = await get_json(server, "/copilot_internal/user")
        assert user["endpoints"]["api"] == server.url
        assert server.usage.requests == 0


async def test_an_unknown_path_is_not_found() -> None:
    async with ModelServer(Script.of([])) as server:
        assert (await exchange(server, http("POST", "/models/session"))).startswith(b"HTTP/1.1 404")


async def test_it_keeps_its_own_count_and_the_bodies() -> None:
    script = Script.of(
        [
            {"text": "a", "usage": {"input": 10, "output": 2, "cached": 4}},
            {"error": 500},
            {"text": "b" * 100, "break": {"after_bytes": 20}},
            {"text": "c", "usage": {"input": 5, "output": 1}},
        ]
    )
    async with ModelServer(script) as server:
        for number in range(4):
            await call(server, user=str(number))
        counted = await get_json(server, "/_trimtab/stats")
        assert counted == {
            "requests": 4,
            "answers": 2,
            "errors": 1,
            "broken": 1,
            "inputTokens": 15,
            "outputTokens": 3,
            "cacheReadTokens": 4,
        }
        assert [seen.json["user"] for seen in server.requests] == ["0", "1", "2", "3"]
        assert server.requests[0].served.model == "m"


async def test_old_bodies_are_let_go() -> None:
    script = Script.of([{"text": "a", "repeat": "forever"}])
    async with ModelServer(script, keep=3, keep_bytes=10_000) as server:
        for _ in range(5):
            await call(server)
        assert [seen.number for seen in server.requests] == [3, 4, 5]
        await call(server, padding="x" * 20_000)
        assert [seen.number for seen in server.requests] == [6]


async def test_a_new_script_can_be_loaded_while_it_runs() -> None:
    async with ModelServer(Script.of(["old"])) as server:
        answer = await exchange(server, http("POST", "/_trimtab/script", b"- new {n}"))
        assert answer.startswith(b"HTTP/1.1 200")
        assert "new 1" in (await call(server))[1]
        answer = await exchange(server, http("POST", "/_trimtab/script", b"- nonsense: 1"))
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"is invalid" in answer


async def test_rules_look_at_the_request_on_every_wire() -> None:
    script = Script.parse("- when: ping\n  text: pong\n- other")
    async with ModelServer(script) as server:
        said = {"role": "user", "content": "ping"}
        assert "pong" in (await call(server, messages=[said]))[1]
        assert "pong" in (await call(server, "/v1/messages", messages=[said]))[1]
        assert "pong" in (await call(server, "/responses", input=[said]))[1]
        assert "other" in (await call(server))[1]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"messages":[1],"stream":true}'])
async def test_a_body_in_no_known_format_is_refused(body: bytes) -> None:
    async with ModelServer(Script.parse("- when: x\n  text: y")) as server:
        answer = await exchange(server, http("POST", "/chat/completions", body))
        assert answer.startswith(b"HTTP/1.1 400")


async def test_errors_have_status_headers_and_the_body_of_the_wire() -> None:
    script = Script.of(
        [
            {"error": {"status": 529, "message": "busy", "headers": {"retry-after": "9"}}},
            {"error": {"status": 418, "body": "short and stout"}},
        ]
    )
    async with ModelServer(script) as server:
        answer = await exchange(server, http("POST", "/v1/messages", b"{}"))
        assert answer.startswith(b"HTTP/1.1 529")
        assert b"retry-after: 9" in answer
        assert b"overloaded_error" in answer
        assert (await call(server)) == (418, "short and stout")


async def test_a_client_that_sends_no_more_still_gets_its_answer() -> None:
    async with ModelServer(Script.of([{"text": "late", "delay": 0.05}])) as server:
        raw = http("POST", "/chat/completions", b"{}").replace(b"Connection: close\r\n", b"")
        assert b"late" in await exchange(server, raw, half=True)


async def test_a_client_that_stops_in_the_middle_of_a_request_is_let_go() -> None:
    async with ModelServer(Script.of([])) as server:
        assert await exchange(server, b"POST /responses HTTP/1.1\r\nContent-Le", half=True) == b""
        raw = b"POST /responses HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"
        assert await exchange(server, raw, half=True) == b""
        assert await exchange(server, b"HELLO\r\n\r\n", half=True) == b""


async def test_what_breaks_at_the_start_sends_no_byte() -> None:
    script = Script.of([{"break": "close"}, {"break": "half"}, {"break": "reset"}])
    async with ModelServer(script) as server:
        raw = http("POST", "/chat/completions", b"{}")
        assert await exchange(server, raw) == b""
        assert await exchange(server, raw) == b""
        with pytest.raises(ConnectionResetError):
            await exchange(server, raw)


async def test_a_silence_with_an_end_delays_the_rest() -> None:
    script = Script.of([{"text": "abc", "break": {"how": "stall", "after": 2, "seconds": 0.05}}])
    async with ModelServer(script) as server:
        started = time.perf_counter()
        status, body = await call(server, stream=True)
        assert status == 200
        assert "[DONE]" in body
        assert time.perf_counter() - started >= 0.05


async def test_stopping_does_not_wait_for_stalled_answers() -> None:
    server = ModelServer(Script.of([{"break": "stall"}]))
    await server.start()
    asked = asyncio.create_task(call(server))
    await asyncio.wait_for(server.wait_for_requests(1), 60)
    async with asyncio.timeout(60):
        await server.stop()
    with pytest.raises((IndexError, OSError)):
        await asked


async def test_requests_on_one_connection_are_answered_in_turn() -> None:
    async with ModelServer(Script.of(["first", "second"])) as server:
        first = http("POST", "/chat/completions", b"{}").replace(b"Connection: close\r\n", b"")
        second = http("POST", "/chat/completions", b"{}")
        answer = await exchange(server, first + second)
        assert answer.index(b"first") < answer.index(b"second")
        assert server.connections == 1


async def test_a_port_in_use_is_said_with_what_to_do() -> None:
    async with ModelServer(Script.of([])) as server:
        other = ModelServer(Script.of([]), port=server.port)
        with pytest.raises(
            ConfigurationError,
            match=r"cannot listen.*\(Address already in use\); choose another port",
        ):
            await other.start()


async def test_a_large_request_is_answered_in_milliseconds() -> None:
    async with ModelServer(Script.of([{"text": "ok", "repeat": "forever"}])) as server:
        raw = http(
            "POST",
            "/chat/completions",
            b'{"model":"m","stream":false,"x":"%b"}' % (b"y" * 2_000_000),
        )
        times = []
        for _ in range(5):
            started = time.process_time()
            await exchange(server, raw)
            times.append(time.process_time() - started)
        assert min(times) < 0.05
