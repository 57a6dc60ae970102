"""Sessions without a model, sessions that are closed twice, and the end of the server."""

import asyncio
from typing import Any

import pytest

from clikit import Cli
from rpckit import Raw, read_frame, request, start_port

NEEDS_NO_MODEL = {
    "session.getMessages": {},
    "session.agent.list": {},
    "session.agent.select": {"name": "explore"},
    "session.name.set": {"name": "n"},
    "session.mode.set": {"mode": "plan"},
    "session.history.truncate": {"eventId": "none"},
    "session.workspaces.listFiles": {},
    "session.plan.read": {},
    "session.metadata.snapshot": {},
    "session.log": {"message": "m"},
}


async def test_a_session_without_any_model_service_does_all_but_model_calls(cli: Cli) -> None:
    server = await Raw.start(cli)
    created = await server.call("session.create", requestPermission=False)
    session_id = created["result"]["sessionId"]
    for number, (method, params) in enumerate(NEEDS_NO_MODEL.items(), 2):
        reply = await server.call(method, number, sessionId=session_id, **params)
        assert "No model service" not in str(reply), reply
    asked = await server.call("session.sendAndWait", 50, sessionId=session_id, prompt="hi")
    assert "No model service is configured" in asked["error"]["message"]
    events = await server.call("session.getMessages", 51, sessionId=session_id)
    errors = [event for event in events["result"]["events"] if event["type"] == "session.error"]
    assert "OPENAI_API_KEY" in errors[0]["data"]["message"]
    await server.call("session.destroy", 52, sessionId=session_id)
    resumed = await server.call("session.resume", 53, sessionId=session_id)
    assert resumed["result"]["sessionId"] == session_id
    assert await server.end() == 0


@pytest.mark.parametrize("method", ["session.destroy", "session.shutdown", "session.suspend"])
async def test_a_session_may_be_closed_twice(cli: Cli, method: str) -> None:
    server = await Raw.start(cli)
    created = await server.call("session.create")
    session_id = created["result"]["sessionId"]
    for number in (2, 3):
        reply = await server.call(method, number, sessionId=session_id)
        assert "result" in reply, reply
    assert await server.end() == 0


async def test_a_session_that_another_client_closed_may_be_closed(cli: Cli) -> None:
    process, port = await start_port(cli, "--port", "0")
    first = await asyncio.open_connection("127.0.0.1", port)
    second = await asyncio.open_connection("127.0.0.1", port)

    async def call(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], data: bytes) -> Any:
        streams[1].write(data)
        while "id" not in (message := await read_frame(streams[0])) or "method" in message:
            pass
        return message

    created = await call(first, request("session.create", 1))
    session_id = created["result"]["sessionId"]
    await call(second, request("session.resume", 1, sessionId=session_id))
    assert (await call(second, request("session.destroy", 2, sessionId=session_id)))["result"]
    assert (await call(first, request("session.destroy", 2, sessionId=session_id)))["result"]
    await call(first, request("runtime.shutdown", 3))
    async with asyncio.timeout(60):
        assert await process.wait() == 0
    first[1].close()
    second[1].close()


async def test_after_shutdown_no_call_is_served_and_the_process_ends(cli: Cli) -> None:
    server = await Raw.start(cli)
    await server.send(request("runtime.shutdown", 1) + request("session.create", 2))
    replies = {(message := await server.read())["id"]: message for _ in range(2)}
    assert replies[1]["result"] is None
    assert "shut down" in replies[2]["error"]["message"]
    async with asyncio.timeout(60):
        assert await server.process.wait() == 0
