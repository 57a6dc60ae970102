"""Answers by a schema over the official SDK, on every wire."""

import json
from typing import Any

import pytest
from copilot.session import PermissionHandler
from pydantic import BaseModel

from sdkkit import Sdk, talking, use

ANSWER = {"text": '{"city": "Bonn", "degrees": 21}'}


class Weather(BaseModel):
    city: str
    degrees: int


WIRES = [
    ("openai", "completions", lambda body: body["response_format"]["json_schema"]["schema"]),
    ("openai", "responses", lambda body: body["text"]["format"]["schema"]),
    ("anthropic", None, lambda body: body["output_config"]["format"]["schema"]),
]


@pytest.mark.parametrize(("kind", "wire", "find"), WIRES, ids=["chat", "responses", "messages"])
async def test_an_answer_by_a_schema_is_asked_for_until_the_answer_is_there(
    sdk: Sdk, kind: str, wire: str | None, find: Any
) -> None:
    script = [use("glob", pattern="*"), ANSWER, {"text": "Plain again."}]
    async with talking(sdk, script) as talk:
        url = talk.server.base_url if kind == "openai" else talk.server.url
        provider: Any = {"type": kind, "base_url": url, "api_key": "k"}
        if wire:
            provider["wire_api"] = wire
        session = await talk.client.create_session(
            on_permission_request=PermissionHandler.approve_all, model="scripted", provider=provider
        )
        answer = await session.send_and_wait("The weather?", response_schema=Weather)
        assert answer is not None
        assert Weather(**json.loads(answer.data.content)).degrees == 21
        plain = await session.send_and_wait("And now in words.")
        assert plain is not None
        assert plain.data.content == "Plain again."
        bodies = [request.json for request in talk.server.requests]
    schema = Weather.model_json_schema()
    assert [find(body) for body in bodies[:2]] == [schema, schema]
    assert not {"response_format", "text", "output_config"} & set(bodies[2])
