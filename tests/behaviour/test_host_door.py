"""The one door for prompts, and the runtime behind it that can be replaced."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from livekit import opened
from loopkit import call
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.contracts.run import Prompt
from trimtab.host.requests import handle_request
from trimtab.testing import Script, ScriptedProvider
from trimtab.transports.acp.agent import EditorAgent
from trimtab.transports.acp.protocol import Then as EditorThen
from trimtab.transports.mcp.own import OwnService
from trimtab.transports.rpc.dispatch import answer
from trimtab.transports.rpc.protocol import Then
from trimtab.transports.rpc.server import Server

SOURCE = Path(__file__).parents[2] / "src" / "trimtab"


@pytest.mark.proves("VSC-05", "VSC-17")
async def test_a_request_is_sent_to_an_idle_session_and_steers_a_busy_one(tmp_path: Path) -> None:
    asked, decided = asyncio.Event(), asyncio.Event()

    async def ask(request_id: str, request: Any) -> Answer:
        asked.set()
        await decided.wait()
        return Answer(kind="approve-once")

    replies = [
        {"text": "Hello."},
        {"tools": [call("bash", command="touch x", description="x")]},
        {"text": "Made, and named as you wish."},
        {"text": "The last answer."},
    ]
    async with opened(tmp_path, replies, ask, permissions=PermissionOptions()) as (live, watch, _):
        idle = handle_request(live, "greet me")
        assert not idle.steers
        first = await idle.finished()
        assert first.response is not None
        assert first.response[0].data.content == "Hello."
        working = handle_request(live, "make x")
        await asked.wait()
        steering = handle_request(live, "call it y")  # a person is being asked: that is busy, too
        queued = handle_request(live, "and then?", mode="enqueue")
        assert (working.steers, steering.steers, queued.steers) == (False, True, False)
        decided.set()
        async with asyncio.timeout(50):
            ends = [await request.finished() for request in (queued, steering, working)]
        said = [end.response and end.response[0].data.content for end in ends]
        assert said == ["The last answer.", *["Made, and named as you wish."] * 2]
        delivered = [(data.content, data.delivery) for data in watch.of("user.message")]
    assert [content for content, _ in delivered] == [
        "greet me",
        "make x",
        "call it y",
        "and then?",
    ]
    assert [content for content, way in delivered if way == "steering"] == ["call it y"]


@pytest.mark.proves("VSC-05")
async def test_a_request_takes_attachments_and_ends_when_it_is_withdrawn_or_fails(
    tmp_path: Path,
) -> None:
    replies = [{"text": "I see it.", "delay": 0.2}, {"error": {"status": 401}}]
    file = {"type": "file", "path": str(tmp_path / "a.txt"), "displayName": "a.txt"}
    (tmp_path / "a.txt").write_text("a")
    async with opened(tmp_path, replies) as (live, watch, _):
        seen = handle_request(live, "look", attachments=(file,))
        gone = handle_request(live, "never mind", mode="enqueue")
        live.inbox.withdraw(gone.id, "changed my mind")
        async with asyncio.timeout(50):
            assert (await gone.finished()).aborted
            assert not (await seen.finished()).aborted
            failed = await handle_request(live, Prompt(text="again")).finished()
    assert watch.of("user.message")[0].attachments[0]["path"] == file["path"]
    assert failed.error is not None
    assert failed.error.type == "session.error"


@pytest.mark.proves("VSC-05")
def test_every_transport_hands_prompts_in_at_the_door() -> None:
    around = re.compile(r"\blive\.(?:send|ask)\(")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((SOURCE / "transports").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if around.search(line)
    ]
    assert found == []


class Loaded:
    """Loads a runtime with a scripted model, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, env: Mapping[str, str], on_open: Callable[[LiveSession], None] | None = None
    ) -> Runtime:
        self.count += 1
        provider = ScriptedProvider(Script.of([{"text": "From the stand-in."}]))
        return Runtime(env=env, provider=provider, on_open=on_open)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"COPILOT_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}


class Link:
    """The client of an MCP service, which is told nothing here."""

    def __getattr__(self, name: str) -> Any:
        async def tell(*_args: Any, **_more: Any) -> None:
            return None

        return tell


@pytest.mark.proves("VSC-02")
async def test_the_runtime_behind_the_sdk_server_can_be_replaced(
    tmp_path: Path, env: dict[str, str]
) -> None:
    load = Loaded()
    server = Server(env, defaults=SessionOptions(cwd=str(tmp_path)), load=load)
    assert load.count == 0  # nothing is loaded before the first session
    peer = server.new_peer()
    peer.authenticated = True

    async def ask(method: str, **params: Any) -> Any:
        reply = await answer(server, peer, method, msgspec.Raw(msgspec.json.encode(params)))
        return reply.result if isinstance(reply, Then) else reply

    session = (await ask("session.create"))["sessionId"]
    done = await ask("session.sendAndWait", sessionId=session, prompt="hello")
    assert b"From the stand-in." in bytes(done["response"])
    assert load.count == 1
    await server.close()


@pytest.mark.proves("VSC-02")
async def test_the_runtime_behind_an_editor_can_be_replaced(
    tmp_path: Path, env: dict[str, str]
) -> None:
    load = Loaded()
    agent = EditorAgent(env, SessionOptions(cwd=str(tmp_path)), load=load)
    assert load.count == 0

    async def ask(method: str, **params: Any) -> Any:
        reply = await agent.answer(method, msgspec.Raw(msgspec.json.encode(params)))
        return reply.result if isinstance(reply, EditorThen) else reply

    await ask("initialize", protocolVersion=1)
    session = (await ask("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
    prompt = [{"type": "text", "text": "hello"}]
    assert (await ask("session/prompt", sessionId=session, prompt=prompt))["stopReason"] == (
        "end_turn"
    )
    assert agent.sessions.find(session).editor.live.answer == "From the stand-in."
    assert load.count == 1
    await agent.sessions.close_all()


@pytest.mark.proves("VSC-02")
async def test_the_runtime_behind_the_mcp_server_can_be_replaced(
    tmp_path: Path, env: dict[str, str]
) -> None:
    load = Loaded()
    service = OwnService(env, str(tmp_path), Link(), load)  # type: ignore[arg-type]
    arguments = {"prompt": "hello"}
    reply = await service.answer("tools/call", {"name": "run", "arguments": arguments})
    assert "From the stand-in." in str(reply)
    assert load.count == 1
