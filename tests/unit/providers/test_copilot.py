"""GitHub's model service: the token, the address, the headers, the wire of each model."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from netkit import Listener, listening
from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.contracts.messages import Image, UserMessage
from trimtab.contracts.provider import Reply, Request
from trimtab.providers.copilot import Copilot, find_token
from trimtab.testing import ModelServer, Script

IMAGE = UserMessage(parts=(Image(data="aGk=", mime_type="image/png"),))


@asynccontextmanager
async def account(replies: Any, **variables: str) -> AsyncIterator[tuple[Copilot, ModelServer]]:
    async with ModelServer(Script.of(replies)) as server:
        env = {
            "GH_TOKEN": "gho_0123456789",
            "COPILOT_DEBUG_GITHUB_API_URL": server.url,
            **variables,
        }
        key = find_token(env)
        assert key is not None
        copilot = Copilot(key, env, offline=True)
        try:
            yield copilot, server
        finally:
            await copilot.aclose()


async def ask(copilot: Copilot, model: str = "scripted", **options: Any) -> Reply:
    request = Request(
        model=model, system="s", messages=options.pop("messages", [UserMessage.of("hi")]), **options
    )
    *_, reply = [item async for item in copilot.stream(request)]
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.proves("MODEL-02")
def test_the_token_that_says_what_it_is_for_comes_first(tmp_path: Path) -> None:
    every = {"GITHUB_TOKEN": "3", "GH_TOKEN": "2", "COPILOT_GITHUB_TOKEN": "1"}
    order = []
    while (key := find_token({**every, "PATH": ""})) is not None:
        order.append((key.source, key.value))
        del every[key.source]
    assert order == [("COPILOT_GITHUB_TOKEN", "1"), ("GH_TOKEN", "2"), ("GITHUB_TOKEN", "3")]
    assert "gho" not in repr(find_token({"GH_TOKEN": "gho_1"}))


@pytest.mark.proves("MODEL-02")
async def test_without_a_variable_gh_is_asked_if_it_is_there(tmp_path: Path) -> None:
    program = tmp_path / "gh"
    program.write_text("#!/bin/sh\necho gho_from_gh\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    key = find_token(env)
    assert key is not None
    assert key.command == "gh auth token"
    assert find_token({"PATH": str(tmp_path / "none")}) is None
    assert find_token({**env, "TRIMTAB_NO_LOGIN": "1"}) is None


async def test_the_account_says_where_its_models_are() -> None:
    async with account([{"text": "hello"}]) as (copilot, server):
        reply = await ask(copilot, cache_key="session-1", headers={"x-initiator": "user"})
        assert reply.message.text == "hello"
        headers = server.requests[0].headers
        assert headers["authorization"] == "Bearer gho_0123456789"
        assert headers["x-client-session-id"] == "session-1"
        assert headers["x-initiator"] == "user"
        for name in ("copilot-integration-id", "openai-intent", "x-github-api-version"):
            assert headers[name]
        assert "copilot-vision-request" not in headers


async def test_a_request_with_an_image_says_so() -> None:
    async with account([{"text": "seen"}]) as (copilot, server):
        await ask(copilot, messages=[IMAGE])
        assert server.requests[0].headers["copilot-vision-request"] == "true"


async def test_copilot_api_url_spares_the_question_to_github() -> None:
    async with ModelServer(Script.of([{"text": "hello"}])) as server:
        env = {
            "COPILOT_GITHUB_TOKEN": "gho_0123456789",
            "COPILOT_API_URL": server.url,
            "COPILOT_DEBUG_GITHUB_API_URL": "http://127.0.0.1:1",
        }
        key = find_token(env)
        assert key is not None
        copilot = Copilot(key, env, offline=True)
        assert (await ask(copilot)).message.text == "hello"
        await copilot.aclose()


async def test_an_unknown_model_is_refused_with_names_that_are_like_it() -> None:
    async with account({"replies": [], "models": ["gpt-4.1", "claude-sonnet-4.5"]}) as (copilot, _):
        with pytest.raises(ModelError, match=r"did you mean gpt-4\.1") as caught:
            await ask(copilot, "gpt4.1")
        assert caught.value.error_type == "model_not_found"


@pytest.mark.parametrize(
    ("endpoints", "path"),
    [
        (["/chat/completions", "/responses"], "/chat/completions"),
        (["/responses"], "/responses"),
        (["/v1/messages"], "/v1/messages"),
        ([], "/chat/completions"),
    ],
)
async def test_a_model_is_asked_on_a_wire_it_has(endpoints: list[str], path: str) -> None:
    import json

    asked = []

    async def converse(listener: Listener, reader: Any, writer: Any) -> None:
        while not reader.at_eof():
            try:
                await listener.read(reader)
            except EOFError:
                return
            asked.append(listener.heads[-1].split(" ")[1])
            body = json.dumps({"data": [{"id": "m", "supported_endpoints": endpoints}]}).encode()
            status = "200 OK" if asked[-1] == "/models" else "400 Bad Request"
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)

    async with listening(converse) as server:
        env = {"GH_TOKEN": "gho_0123456789", "COPILOT_API_URL": server.url}
        key = find_token(env)
        assert key is not None
        copilot = Copilot(key, env, offline=True)
        with pytest.raises(ModelError):
            await ask(copilot, "m")
        await copilot.aclose()
    assert asked == ["/models", path]


async def test_a_token_without_access_is_an_authentication_error_that_names_it() -> None:
    async def converse(listener: Listener, reader: Any, writer: Any) -> None:
        await listener.read(reader)
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    async with listening(converse) as server:
        env = {"GH_TOKEN": "gho_0123456789", "COPILOT_DEBUG_GITHUB_API_URL": server.url}
        key = find_token(env)
        assert key is not None
        copilot = Copilot(key, env, offline=True)
        with pytest.raises(AuthenticationError, match="GH_TOKEN"):
            await ask(copilot)
        await copilot.aclose()
        assert len(server.heads) == 1
