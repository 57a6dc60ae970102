"""The connection itself: frames, tokens, ports, ends."""

import asyncio
import signal
from importlib.resources import files

import pytest

from clikit import Cli, serving
from rpckit import Raw, framed, read_frame, request, start_port


@pytest.mark.proves("PKG-01")
async def test_the_handshake_names_protocol_and_version(cli: Cli) -> None:
    assert (files("trimtab") / "py.typed").is_file()
    server = await Raw.start(cli)
    reply = await server.call("connect", "a-string-id")
    assert reply == {
        "jsonrpc": "2.0",
        "id": "a-string-id",
        "result": {"ok": True, "protocolVersion": 3, "version": reply["result"]["version"]},
    }
    assert (await server.call("ping", message="x"))["result"]["message"] == "pong: x"
    assert (await server.call("status.get"))["result"]["protocolVersion"] == 3
    assert await server.end() == 0


async def test_an_unknown_method_is_named(cli: Cli) -> None:
    server = await Raw.start(cli)
    reply = await server.call("session.nonsense")
    assert reply["error"] == {"code": -32601, "message": "Unhandled method session.nonsense"}
    await server.end()


async def test_wrong_parameters_are_an_error_of_that_call(cli: Cli) -> None:
    server = await Raw.start(cli)
    reply = await server.call("session.name.set", sessionId="x", name=5)
    assert reply["error"]["code"] == -32602
    assert "Request session.name.set failed with message:" in reply["error"]["message"]
    reply = await server.call("session.send", sessionId="x", prompt="hi")
    assert reply["error"]["code"] == -32603
    assert reply["error"]["message"].endswith("Session not found: x")
    await server.end()


BAD = [
    (b"hello\n", -32700),
    (b"Content-Length: abc\r\n\r\n", -32700),
    (b"Content-Length: -5\r\n\r\n", -32700),
    (b"Content-Length: 99999999999999\r\n\r\n", -32700),
    (b"GET / HTTP/1.1\r\nOrigin: https://evil.example\r\n\r\n", -32700),
    (framed(b"not json"), -32700),
    (framed(b"\xff\xfe"), -32700),
    (framed(b"[1,2]"), -32600),
    (framed(b'{"id":{},"method":"ping"}'), -32600),
]


@pytest.mark.parametrize(("data", "code"), BAD, ids=[repr(row[0][:24]) for row in BAD])
async def test_a_bad_frame_is_refused_and_the_next_one_answered(
    cli: Cli, data: bytes, code: int
) -> None:
    server = await Raw.start(cli)
    await server.send(data)
    error = await server.read()
    assert (error["id"], error["error"]["code"]) == (None, code)
    assert (await server.call("ping", 7))["id"] == 7
    assert await server.end() == 0


async def test_a_frame_may_come_byte_by_byte(cli: Cli) -> None:
    server = await Raw.start(cli)
    for byte in request("ping"):
        await server.send(bytes([byte]))
    assert (await server.read())["result"]["message"] == "pong"
    await server.end()


async def test_many_requests_in_one_write_are_all_answered(cli: Cli) -> None:
    server = await Raw.start(cli)
    await server.send(b"".join(request("ping", number) for number in range(200)))
    answered = {(await server.read())["id"] for _ in range(200)}
    assert answered == set(range(200))
    await server.end()


async def test_nothing_but_frames_reaches_standard_output(cli: Cli) -> None:
    async with serving([{"text": "Hi."}]) as model:
        server = await Raw.start(cli.use(model))
        created = await server.call("session.create", requestPermission=False)
        session_id = created["result"]["sessionId"]
        await server.call("session.sendAndWait", 2, sessionId=session_id, prompt="hi")
        await server.call("runtime.shutdown", 3)
        assert await server.end() == 0


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT"])
async def test_the_server_ends_and_records_the_end_of_its_sessions(cli: Cli, end: str) -> None:
    async with serving([{"tools": [{"name": "bash", "arguments": {"command": "sleep 600"}}]}]) as m:
        server = await Raw.start(cli.use(m))
        await server.call("session.create")
        if end == "eof":
            assert await server.end() == 0
        else:
            server.process.send_signal(getattr(signal, end))
            async with asyncio.timeout(60):
                assert await server.process.wait() == 0
    (log,) = cli.logs()
    assert b'"session.shutdown"' in log.read_bytes()


FLAGS = [
    (["--headless", "--stdio", "--nonsense"], "--nonsense"),
    (["--headless", "--port", "x"], "--port"),
    (["--headless", "--stdio", "--port", "1"], "--stdio"),
    (["--headless", "--auth-token-env", "NOPE"], "NOPE"),
]


@pytest.mark.parametrize(("args", "named"), FLAGS, ids=[" ".join(row[0]) for row in FLAGS])
async def test_a_flag_that_is_wrong_is_named(cli: Cli, args: list[str], named: str) -> None:
    outcome = await cli.run(*args)
    assert outcome.code == 2
    assert named in outcome.notes


async def test_the_flags_the_sdk_passes_are_taken(cli: Cli) -> None:
    server = await Raw.start(
        cli,
        *("--no-auto-update", "--log-level", "debug", "--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"),
        *("--no-auto-login", "--session-idle-timeout", "5"),
        env={"COPILOT_SDK_AUTH_TOKEN": "gho_x"},
    )
    assert (await server.call("auth.getStatus"))["result"]["isAuthenticated"] is True
    await server.end()


async def test_a_port_serves_several_clients_and_survives_any_of_them(cli: Cli) -> None:
    process, port = await start_port(cli)
    good, good_writer = await asyncio.open_connection("127.0.0.1", port)
    bad, bad_writer = await asyncio.open_connection("127.0.0.1", port)
    bad_writer.write(b"garbage\r\n\r\n" + request("ping"))
    assert (await read_frame(bad))["error"]["code"] == -32700
    assert await bad.read() == b""
    dying = (await asyncio.open_connection("127.0.0.1", port))[1]
    dying.write(request("ping")[:30])
    dying.transport.abort()
    good_writer.write(request("ping"))
    assert (await read_frame(good))["result"]["message"] == "pong"
    good_writer.close()
    bad_writer.close()
    process.terminate()
    assert await process.wait() == 0


async def test_a_web_request_is_refused(cli: Cli) -> None:
    process, port = await start_port(cli)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    smuggled = request("session.create")
    writer.write(
        b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(smuggled), smuggled)
    )
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"jsonrpc" not in answer
    writer.close()
    process.terminate()
    await process.wait()
    assert cli.logs() == []


TOKENS = [("secret", None), (None, -32002), ("wrong", -32002)]


@pytest.mark.parametrize(("token", "code"), TOKENS)
async def test_a_token_is_needed_where_one_is_set(
    cli: Cli, token: str | None, code: int | None
) -> None:
    process, port = await start_port(cli, env={"COPILOT_CONNECTION_TOKEN": "secret"})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("session.list"))
    assert (await read_frame(reader))["error"]["message"] == "AUTHENTICATION_FAILED"
    writer.write(request("connect", token=token) if token else request("connect"))
    reply = await read_frame(reader)
    assert reply.get("error", {}).get("code") == code
    writer.write(request("status.get"))
    assert ("result" in await read_frame(reader)) == (code is None)
    writer.close()
    process.terminate()
    await process.wait()
