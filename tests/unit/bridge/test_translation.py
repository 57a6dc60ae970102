"""Conversations, tools and options on the wire of another service."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from bridgekit import ROUTES, WIRES, Bridged, bridged
from trimtab.contracts.messages import AssistantMessage, Image, Text, ToolMessage, UserMessage

PIXEL = "iVBORw0KGgo="
URL = f"data:image/png;base64,{PIXEL}"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


async def post(bridge: Bridged, route: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=50) as client:
        return await client.post(
            bridge.url + ROUTES.get(route, route),
            json=body,
            headers={"x-api-key": bridge.key, **headers},
        )


def turns(route: str) -> dict[str, Any]:
    """Return one conversation in each format: a picture, two calls, their results, a system note."""
    if route == "anthropic-messages":
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        image = {"type": "image", "source": source}
        calls = [
            {"type": "tool_use", "id": f"call_{name}", "name": "view", "input": {"path": name}}
            for name in "ab"
        ]
        results = [
            {"type": "tool_result", "tool_use_id": "call_a", "content": "content of a"},
            {
                "type": "tool_result",
                "tool_use_id": "call_b",
                "content": [{"type": "text", "text": "content of b"}, image],
            },
        ]
        return {
            "model": "scripted",
            "max_tokens": 900,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look."}, image]},
                {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, *calls]},
                {"role": "user", "content": results},
                {"role": "system", "content": "The person is in a hurry."},
                {"role": "user", "content": "Go on."},
            ],
            "tools": [{"name": "view", "description": "Shows.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "view", "disable_parallel_tool_use": True},
            "temperature": 0.5,
            "stop_sequences": ["END"],
        }
    if route == "openai-chat":
        calls = [
            {
                "id": f"call_{name}",
                "type": "function",
                "function": {"name": "view", "arguments": f'{{"path":"{name}"}}'},
            }
            for name in "ab"
        ]
        picture = {"type": "image_url", "image_url": {"url": URL}}
        function = {"name": "view", "description": "Shows.", "parameters": SCHEMA}
        return {
            "model": "scripted",
            "max_tokens": 900,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Look."}, picture]},
                {"role": "assistant", "content": "Yes.", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "call_a", "content": "content of a"},
                {
                    "role": "tool",
                    "tool_call_id": "call_b",
                    "content": [{"type": "text", "text": "content of b"}, picture],
                },
                {"role": "system", "content": "The person is in a hurry."},
                {"role": "user", "content": "Go on."},
            ],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": "view"}},
            "parallel_tool_calls": False,
            "temperature": 0.5,
            "stop": "END",
        }
    picture = {"type": "input_image", "image_url": URL}
    return {
        "model": "scripted",
        "max_output_tokens": 900,
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Look."}, picture]},
            {"type": "message", "role": "assistant", "content": "Yes."},
            *(
                {
                    "type": "function_call",
                    "call_id": f"call_{name}",
                    "name": "view",
                    "arguments": f'{{"path":"{name}"}}',
                }
                for name in "ab"
            ),
            {"type": "function_call_output", "call_id": "call_a", "output": "content of a"},
            {
                "type": "function_call_output",
                "call_id": "call_b",
                "output": [{"type": "input_text", "text": "content of b"}, picture],
            },
            {"role": "developer", "content": "The person is in a hurry."},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [{"type": "function", "name": "view", "parameters": SCHEMA}],
        "tool_choice": {"type": "function", "name": "view"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
    }


def choice_of(wire: str, body: dict[str, Any]) -> Any:
    choice = body["tool_choice"]
    return choice.get("name") or choice["function"]["name"] if wire else None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("route", WIRES)
async def test_a_conversation_reaches_the_service_whole(
    tmp_path: Path, route: str, wire: str
) -> None:
    async with bridged(tmp_path, wire, ["Fine."]) as bridge:
        answer = await post(bridge, route, turns(route))
        assert answer.status_code == 200, answer.text
        (sent,) = bridge.server.requests
        served, body = sent.served, sent.json
    assert served.system == "Be brief."
    messages = list(served.messages)
    first = messages[0]
    assert isinstance(first, UserMessage)
    assert first.parts == (Text(text="Look."), Image(data=PIXEL, mime_type="image/png"))
    reply = messages[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.text == "Yes."
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [
        ("call_a", '{"path":"a"}'),
        ("call_b", '{"path":"b"}'),
    ]
    results = [message for message in messages if isinstance(message, ToolMessage)]
    assert [(result.call_id, result.text) for result in results] == [
        ("call_a", "content of a"),
        ("call_b", "content of b"),
    ]
    assert messages[2:4] == results, "results follow their calls without anything between"
    later = [part for message in messages[4:] for part in getattr(message, "parts", ())]
    assert Image(data=PIXEL, mime_type="image/png") in later
    texts = [part.text for part in later if isinstance(part, Text)]
    assert any("The person is in a hurry." in text for text in texts)
    assert texts[-1] == "Go on."
    assert [tool.name for tool in served.tools] == ["view"]
    assert choice_of(wire, body) == "view"
    assert body["temperature"] == 0.5
    limits = {name: body[name] for name in body if name.startswith("max_")}
    assert list(limits.values()) == [900]
    if wire == "openai-chat" and route != "openai-responses":
        assert body["stop"] in (["END"], "END")
    if wire == "anthropic-messages":
        assert body["tool_choice"]["disable_parallel_tool_use"] is True
    else:
        assert body["parallel_tool_calls"] is False or route == wire


def schema_request(route: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    if route == "anthropic-messages":
        form = {"type": "json_schema", "schema": schema}
        message = {"role": "user", "content": "Title?"}
        return {"max_tokens": 9, "messages": [message], "output_config": {"format": form}}
    named = {"name": "title", "schema": schema, "strict": True}
    if route == "openai-chat":
        form = {"type": "json_schema", "json_schema": named}
        return {"messages": [{"role": "user", "content": "Title?"}], "response_format": form}
    return {"input": "Title?", "text": {"format": {"type": "json_schema", **named}}}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("route", WIRES)
async def test_a_schema_binds_the_answer_on_every_wire(
    tmp_path: Path, route: str, wire: str
) -> None:
    async with bridged(tmp_path, wire, ['{"title":"x"}']) as bridge:
        answer = await post(bridge, route, {"model": "scripted", **schema_request(route)})
        assert answer.status_code == 200, answer.text
        body = bridge.server.requests[0].json
    if wire == "anthropic-messages":
        found = body["output_config"]["format"]["schema"]
    elif wire == "openai-chat":
        found = body["response_format"]["json_schema"]["schema"]
    else:
        found = body["text"]["format"]["schema"]
    assert found["properties"] == {"title": {"type": "string"}}


THOUGHT = {
    "text": "Yes.",
    "reasoning": {"text": "Hm.", "opaque": "opaque-1", "encrypted": "encrypted-1"},
    "tools": [{"name": "view", "arguments": {"path": "a"}, "id": "call_a"}],
}


def continued(route: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the next request of a client that keeps what it got."""
    start = turns(route)
    if route == "anthropic-messages":
        result = {"type": "tool_result", "tool_use_id": "call_a", "content": "content of a"}
        start["messages"] = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [result]},
        ]
    elif route == "openai-chat":
        start["messages"] = [
            {"role": "user", "content": "Look."},
            answer["choices"][0]["message"],
            {"role": "tool", "tool_call_id": "call_a", "content": "content of a"},
        ]
    else:
        output = {"type": "function_call_output", "call_id": "call_a", "output": "content of a"}
        start["input"] = [{"role": "user", "content": "Look."}, *answer["output"], output]
    start.pop("tool_choice")
    return start


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("route", WIRES)
async def test_opaque_reasoning_returns_to_the_service_it_came_from(
    tmp_path: Path, route: str, wire: str
) -> None:
    async with bridged(tmp_path, wire, [THOUGHT, "Done."]) as bridge:
        answer = await post(bridge, route, turns(route))
        assert answer.status_code == 200, answer.text
        again = await post(bridge, route, continued(route, answer.json()))
        assert again.status_code == 200, again.text
        sent = bridge.server.requests[1]
    expected = "encrypted-1" if wire == "openai-responses" else "opaque-1"
    assert expected.encode() in sent.body
    assert b"trimtab-reasoning" not in sent.body


async def test_reasoning_of_another_service_is_not_sent(tmp_path: Path) -> None:
    async with bridged(tmp_path, "openai-chat", [THOUGHT]) as bridge:
        answer = (await post(bridge, "anthropic-messages", turns("anthropic-messages"))).json()
    async with bridged(tmp_path, "anthropic-messages", ["Done."]) as bridge:
        body = continued("anthropic-messages", answer)
        assert (await post(bridge, "anthropic-messages", body)).status_code == 200
        sent = bridge.server.requests[0]
    assert b"trimtab-reasoning" not in sent.body
    assert b'"thinking"' not in sent.body


@pytest.mark.parametrize("wire", ["anthropic-messages", "openai-chat"])
async def test_namespaced_and_freeform_tools_of_a_responses_client_keep_their_names(
    tmp_path: Path, wire: str
) -> None:
    patch = {"type": "custom", "name": "apply_patch", "format": {"type": "text"}}
    nested = {"type": "function", "name": "read", "parameters": SCHEMA}
    body = {
        "model": "scripted",
        "input": [
            {"type": "additional_tools", "role": "developer", "tools": [patch]},
            {"role": "user", "content": "Go."},
        ],
        "tools": [
            {"type": "namespace", "name": "mcp__files", "tools": [nested]},
            {"type": "web_search"},
        ],
    }
    reply = {
        "tools": [
            {"name": "mcp__files__read", "arguments": {"path": "a"}, "id": "call_1"},
            {"name": "apply_patch", "arguments": {"input": "*** Begin"}, "id": "call_2"},
        ]
    }
    async with bridged(tmp_path, wire, [reply, reply]) as bridge:
        whole = (await post(bridge, "openai-responses", body)).json()["output"]
        streamed = (await post(bridge, "openai-responses", {**body, "stream": True})).text
        assert bridge.left_out == ["tool web_search"]
        names = [tool.name for tool in bridge.server.requests[0].served.tools]
    assert sorted(names) == ["apply_patch", "mcp__files__read"]
    read, change = whole
    assert (read["type"], read["namespace"], read["name"]) == (
        "function_call",
        "mcp__files",
        "read",
    )
    assert (change["type"], change["input"]) == ("custom_tool_call", "*** Begin")
    assert '"namespace":"mcp__files"' in streamed
    assert '"input":"*** Begin"' in streamed


async def test_own_wire_requests_keep_unknown_fields_and_beta_headers(tmp_path: Path) -> None:
    body = {
        "model": "scripted",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "Hi"}],
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "a_field_of_tomorrow": [1, 2.50, {"x": None}],
    }
    async with bridged(tmp_path, "anthropic-messages", ["Hello."]) as bridge:
        beta = "context-management-2025-06-27,future-beta"
        answer = await post(bridge, "/v1/messages?beta=true", body, **{"anthropic-beta": beta})
        assert answer.status_code == 200
        (sent,) = bridge.server.requests
        assert sent.json == body
        assert sent.headers["anthropic-beta"] == beta
        assert sent.headers["x-api-key"] != bridge.key
        assert bridge.key.encode() not in sent.body
        assert not bridge.left_out


async def test_a_growing_conversation_is_stored_once(tmp_path: Path) -> None:
    messages: list[dict[str, str]] = []
    bodies = []
    async with bridged(tmp_path, "openai-chat", ["ok"] * 20) as bridge:
        for number in range(20):
            messages += [{"role": "user", "content": f"{number} " + "x" * 5000}]
            body = {"model": "scripted", "messages": list(messages), "seed": number % 2}
            bodies.append(body)
            assert (await post(bridge, "openai-chat", body)).status_code == 200
            messages += [{"role": "assistant", "content": "ok"}]
        assert bridge.requests == bodies
        size = Path(bridge.path).stat().st_size
    assert size < 20 * 5000 * 1.5
