"""The frames of the server, read by a reader that knows the JSON-RPC specification only."""

import asyncio
import json
from typing import Any

import pytest

from clikit import Cli, serving
from jsonrpckit import StrictReader, Violation, parse

IDS: list[Any] = [
    *(0, 1, -1, 7, 2**31, 2**53, 2**63 - 1, -(2**63)),
    *("", "a", "7", "0", "null", "ä€😀", '"quoted"', "x" * 200),
]


def frame(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Server:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.reader = StrictReader(process.stdout)
        self._in = process.stdin

    async def send(self, method: str, request_id: Any, **params: Any) -> dict[str, Any]:
        self.reader.expect(request_id)
        await self.write(
            frame({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        )
        return await self.reader.reply(request_id)

    async def write(self, data: bytes) -> None:
        self._in.write(data)
        await self._in.drain()

    async def end(self) -> None:
        self._in.close()
        async with asyncio.timeout(60):
            assert await self.process.wait() == 0


async def start(cli: Cli, **env: str) -> Server:
    process = await cli.start("--headless", "--stdio", stdin_fd=asyncio.subprocess.PIPE, env=env)
    return Server(process)


async def test_ids_come_back_exactly_as_they_were_sent(cli: Cli) -> None:
    server = await start(cli)
    for request_id in IDS:
        reply = await server.send("ping", request_id, message="x")
        assert reply["result"]["message"] == "pong: x"
    for request_id in IDS:
        assert (await server.send("no.such.method", request_id))["error"]["code"] == -32601
    await server.end()


CODES: list[tuple[bytes, int]] = [
    (b"{", -32700),
    (b"\xff", -32700),
    (b"[]", -32600),
    (b"1", -32600),
    (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":5,"method":7}', -32600),
]


@pytest.mark.parametrize(("body", "code"), CODES)
async def test_what_is_no_request_gets_the_code_of_the_specification(
    cli: Cli, body: bytes, code: int
) -> None:
    server = await start(cli)
    server.reader.expect(5)  # of the last case, whose id can be read
    await server.write(frame(body))
    message = await server.reader.message()
    assert message["error"]["code"] == code
    assert (await server.send("ping", "after"))["result"]["protocolVersion"] == 3
    await server.end()


async def test_a_notification_is_never_answered(cli: Cli) -> None:
    server = await start(cli)
    for method in ("ping", "no.such.method", "session.create"):
        await server.write(frame({"jsonrpc": "2.0", "method": method, "params": {"x": 1}}))
    await server.send("ping", 1)
    await server.end()


async def test_a_whole_session_keeps_to_the_specification(cli: Cli) -> None:
    call = {"tools": [{"name": "glob", "arguments": {"pattern": "*"}}]}
    async with serving([call, {"text": "Done."}]) as model:
        server = await start(
            cli, COPILOT_PROVIDER_BASE_URL=model.base_url, COPILOT_MODEL="scripted"
        )
        created = await server.send("session.create", "c", requestPermission=False, streaming=True)
        session_id = created["result"]["sessionId"]
        await server.send(
            "session.permissions.setApproveAll", 2, sessionId=session_id, enabled=True
        )
        answered = await server.send("session.sendAndWait", 3, sessionId=session_id, prompt="hi")
        assert "Done." in json.dumps(answered["result"])
        for number, method in enumerate(("session.getMessages", "session.destroy"), 4):
            assert "result" in await server.send(method, number, sessionId=session_id)
        for number in range(10, 14):
            reply = await server.send("session.name.get", number, sessionId=session_id)
            assert reply["error"]["code"] == -32603
        await server.send("runtime.shutdown", 20)
    await server.end()


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":7.0,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"id":1,"result":1}',
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"jsonrpc":"2.0","id":1,"id":1,"result":1}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32050.5,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32500,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":3}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"more":2}',
    ],
)
def test_the_reader_itself_is_strict(body: bytes) -> None:
    with pytest.raises(Violation):
        parse(body)
