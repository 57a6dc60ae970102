"""Answers by a schema over the official SDK, on every wire."""

import asyncio
import json
from typing import Any

import pytest
from copilot.session import PermissionHandler
from copilot.tools import Tool
from pydantic import BaseModel

from sdkkit import Sdk, make_tool, talking, use

DONE = {"text": "Done."}
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
    async with talking(sdk, script, service="own") as talk:
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


class Answer(BaseModel):
    answer: int


async def test_a_stop_hook_may_correct_an_answer_by_a_schema_after_a_terminal_tool(
    sdk: Sdk,
) -> None:
    stops = 0

    def stop(_input: Any, _invocation: Any) -> Any:
        nonlocal stops
        stops += 1
        return {"decision": "block", "reason": "Make it 99."} if stops == 1 else None

    tool = make_tool("lookup", "58", is_terminal=True, skip_permission=True)
    script = [use("lookup", key="x"), {"text": '{"answer": 63}'}, {"text": '{"answer": 99}'}]
    async with talking(sdk, script, tools=[tool], hooks={"on_agent_stop": stop}) as talk:
        result = await talk.session.send_and_wait_typed("Look it up.", Answer)
        said = [one for one in talk.heard.of("assistant.message") if not one.tool_requests]
        assert "tools" not in talk.server.requests[1].json
        assert "response_format" in talk.server.requests[2].json
    assert result.answer == 99
    assert stops == 2
    assert [json.loads(one.content)["answer"] for one in said] == [63, 99]
    assert len({one.originating_message_id for one in said}) == 1


async def test_what_is_said_while_a_run_stops_still_steers_it(sdk: Sdk) -> None:
    stops: list[str] = []

    async def stop(_input: Any, _invocation: Any) -> None:
        stops.append("stop")
        if len(stops) == 1:
            await talk.session.send("Make it 99.", mode="immediate")

    script = [{"text": '{"answer": 42}'}, {"text": '{"answer": 99}'}]
    async with talking(sdk, script, hooks={"on_agent_stop": stop}) as talk:
        result = await talk.session.send_and_wait_typed("19 + 23?", Answer)
        assert "response_format" in talk.server.requests[1].json
    assert result.answer == 99
    assert len(stops) == 2


async def test_a_terminal_tool_ends_the_turn_unless_it_fails(sdk: Sdk) -> None:
    good, bad = (
        make_tool("good", "ok", is_terminal=True),
        make_tool("bad", ValueError("no"), is_terminal=True),
    )
    script = [use("bad", key="x"), use("good", key="x"), {"text": "Next."}]
    async with talking(sdk, script, tools=[good, bad]) as talk:
        await talk.session.send_and_wait("go")
        assert talk.server.usage.requests == 2
        assert await talk.say("more") == "Next."


async def test_two_questions_at_once_get_their_own_answers(sdk: Sdk) -> None:
    # The client may write its two requests in either order.
    script = [
        {"when": {"last": "one\\?"}, "text": '{"answer": 1}', "delay": 0.3, "repeat": "forever"},
        {"when": {"last": "two\\?"}, "text": '{"answer": 2}', "repeat": "forever"},
    ]
    async with talking(sdk, script) as talk:
        first, second = await asyncio.gather(
            talk.session.send_and_wait_typed("one?", Answer),
            talk.session.send_and_wait_typed("two?", Answer),
        )
    assert (first.answer, second.answer) == (1, 2)


@pytest.mark.parametrize("name", ["bad.name", "", "x" * 65, "with space"])
async def test_tools_with_names_no_service_takes_change_nothing(sdk: Sdk, name: str) -> None:
    async with talking(sdk, [DONE], tools=[make_tool("good", "ok")]) as talk:
        with pytest.raises(Exception, match="name"):
            await talk.session.set_tools([make_tool("fine", "ok"), Tool(name, "A tool.")])
        await talk.say("hi")
        assert "good" in talk.tool_names()
