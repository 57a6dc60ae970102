"""Lists of models: read from any service, kept for a while, never an exception."""

import json
import os
from asyncio import StreamReader, StreamWriter
from pathlib import Path
from typing import Any

import pytest

from netkit import Listener, listening
from trimtab.providers.auth import Key
from trimtab.providers.endpoints import ProviderChoice
from trimtab.providers.http import HttpClient
from trimtab.providers.listing import Discovered, chat_models, discover, read_model
from trimtab.testing import ModelServer, Script


def copilot_model(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "name": name.title(),
        "vendor": "Acme",
        "object": "model",
        "version": "1",
        "preview": False,
        "model_picker_enabled": True,
        "model_picker_category": "versatile",
        "policy": {"state": "enabled", "terms": "x"},
        "billing": {"multiplier": 1.5},
        "supported_endpoints": ["/responses"],
        "capabilities": {
            "type": "chat",
            "tokenizer": "o200k_base",
            "family": name,
            "limits": {"max_context_window_tokens": 200_000, "max_output_tokens": 32_000},
            "supports": {
                "streaming": True,
                "tool_calls": True,
                "vision": True,
                "parallel_tool_calls": True,
                "reasoning_effort": ["low", "high"],
                "adaptive_thinking": True,
            },
        },
        **changes,
    }


async def found(choice: ProviderChoice, cache: str = "", **options: Any) -> Discovered:
    http = HttpClient({}, offline=True)
    try:
        return await discover(choice, http, cache=cache, **options)
    finally:
        await http.aclose()


def answering(body: Any, status: str = "200 OK") -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def converse(listener: Listener, reader: StreamReader, writer: StreamWriter) -> None:
        await listener.read(reader)
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + text)
        await writer.drain()

    return converse


@pytest.mark.proves("MODEL-01")
async def test_the_list_is_asked_for_with_the_bearer_token() -> None:
    async with listening(answering({"data": [copilot_model("a")]})) as server:
        result = await found(ProviderChoice(name="x", base_url=server.url, key=Key(value="tok-1")))
    assert [model.id for model in result.models or ()] == ["a"]
    assert server.heads[0].startswith("GET /models HTTP/1.1\r\n")
    assert "authorization: Bearer tok-1\r\n" in server.heads[0]


@pytest.mark.proves("MODEL-10")
def test_a_model_of_githubs_service_is_read_with_its_abilities_and_limits() -> None:
    model = read_model(copilot_model("m"))
    assert (model.id, model.name, model.vendor) == ("m", "M", "Acme")
    assert (model.window, model.max_output, model.billing_multiplier) == (200_000, 32_000, 1.5)
    assert (model.tools, model.parallel_tools, model.vision) == (True, True, True)
    assert model.efforts == ("low", "high")
    assert model.endpoints == ("/responses",)


@pytest.mark.proves("MODEL-05", "MODEL-13")
def test_only_chat_models_that_are_enabled_or_previews_are_offered() -> None:
    raw = [
        copilot_model("plain"),
        copilot_model("no-policy", policy=None),
        copilot_model("preview", policy=None, preview=True),
        copilot_model("refused", policy={"state": "disabled"}),
        copilot_model("vectors", capabilities={"type": "embeddings"}),
    ]
    models = [read_model(model) for model in raw]
    assert [model.id for model in chat_models(models)] == ["plain", "preview"]
    assert [model.id for model in models] == [model["id"] for model in raw], "the rest can be typed"


def test_lists_of_other_services_are_read_as_far_as_they_say_something() -> None:
    shown: list[dict[str, Any]] = [
        {"id": "gpt-4.1", "owned_by": "openai"},
        {"id": "text-embedding-3-small"},
        {"id": "whisper-1"},
        {"id": "claude-sonnet-4-5", "display_name": "Claude Sonnet 4.5"},
        {"id": "vllm-model", "max_model_len": 32_768},
        {"id": "odd", "capabilities": ["completion"], "context_length": True},
    ]
    models = chat_models([read_model(model) for model in shown])
    assert [m.id for m in models] == ["gpt-4.1", "claude-sonnet-4-5", "vllm-model", "odd"]
    assert [m.window for m in models] == [None, None, 32_768, None]
    assert models[1].name == "Claude Sonnet 4.5"


@pytest.mark.proves("MODEL-07")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", "200 OK"),
        ({"data": 7}, "200 OK"),
        (b"[" * 5000, "200 OK"),
        ({"error": {"message": "no"}}, "401 Unauthorized"),
        ({}, "500 Oops"),
    ],
)
async def test_any_failure_gives_none_and_a_reason(body: Any, status: str) -> None:
    async with listening(answering(body, status)) as server:
        result = await found(ProviderChoice(name="x", base_url=server.url))
    assert result.models is None
    assert result.problem


@pytest.mark.proves("MODEL-07")
async def test_a_service_that_is_not_there_gives_none() -> None:
    result = await found(ProviderChoice(name="x", base_url="http://127.0.0.1:1"))
    assert result.models is None
    failing = Key(command="exit 3", source="X_COMMAND")
    result = await found(ProviderChoice(name="x", base_url="http://127.0.0.1:1", key=failing))
    assert result.models is None
    assert "X_COMMAND" in (result.problem or "")


@pytest.mark.proves("MODEL-08", "MODEL-09")
async def test_a_list_is_kept_in_a_file_until_the_account_changes(tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    async with ModelServer(Script.of([])) as server:
        one = ProviderChoice(name="x", base_url=server.base_url, key=Key(value="token-one"))
        other = ProviderChoice(name="x", base_url=server.base_url, key=Key(value="token-two"))
        assert not (await found(one, folder)).cached
        assert (await found(one, folder)).cached
        assert not (await found(other, folder)).cached, "another account, another list"
        assert not (await found(one, folder, refresh=True)).cached
    names = os.listdir(folder)
    assert len(names) == 2
    kept = "".join((tmp_path / "cache" / name).read_text() + name for name in names)
    assert "token-one" not in kept
    assert (await found(one, folder)).models, "the file answers when the service is gone"


async def test_a_damaged_cache_costs_a_request_and_nothing_else(tmp_path: Path) -> None:
    async with ModelServer(Script.of([])) as server:
        choice = ProviderChoice(name="x", base_url=server.base_url)
        await found(choice, str(tmp_path))
        for name in os.listdir(tmp_path):
            (tmp_path / name).write_bytes(b'{"fetched": "never"')
        again = await found(choice, str(tmp_path))
        assert again.models
        assert not again.cached
        blocked = await found(choice, str(tmp_path / os.listdir(tmp_path)[0] / "below"))
        assert blocked.models
