"""The official packages as clients, over all nine pairs of route and wire."""

from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from bridgekit import WIRES, Bridged, bridged

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
ANSWER = {
    "text": "I will look at both files now.",
    "reasoning": {"text": "Two files matter here.", "opaque": "opaque-1", "encrypted": "secret-1"},
    "tools": [
        {"name": "view", "arguments": {"path": "a.py"}, "id": "call_a"},
        {"name": "view", "arguments": {"path": "b.py"}, "id": "call_b"},
    ],
    "usage": {"input": 120, "output": 34, "cached": 20},
}
ARGUMENTS = [{"path": "a.py"}, {"path": "b.py"}]


class Seen:
    """What a client made of an answer, in one shape for all three."""

    def __init__(
        self, text: str, calls: list[tuple[str, Any]], thought: str, tokens: tuple[int, int]
    ) -> None:
        self.text = text
        self.calls = calls
        self.thought = thought
        self.tokens = tokens


def anthropic(bridge: Bridged) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=bridge.url, api_key=bridge.key, max_retries=0)


def openai(bridge: Bridged) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{bridge.url}/v1", api_key=bridge.key, max_retries=0)


async def ask_messages(bridge: Bridged, *, stream: bool, turns: list[Any] | None = None) -> Any:
    arguments: dict[str, Any] = {
        "model": "scripted",
        "max_tokens": 4000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "Look."}, *(turns or [])],
        "tools": [{"name": "view", "description": "Shows a file.", "input_schema": SCHEMA}],
    }
    async with anthropic(bridge) as client:
        if not stream:
            return await client.messages.create(**arguments)
        async with client.messages.stream(**arguments) as answer:
            return await answer.get_final_message()


def seen_message(message: Any) -> Seen:
    blocks = message.content
    return Seen(
        "".join(block.text for block in blocks if block.type == "text"),
        [(block.name, block.input) for block in blocks if block.type == "tool_use"],
        "".join(block.thinking for block in blocks if block.type == "thinking"),
        (
            message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0),
            message.usage.output_tokens,
        ),
    )


async def ask_chat(bridge: Bridged, *, stream: bool, turns: list[Any] | None = None) -> Any:
    function = {"name": "view", "description": "Shows a file.", "parameters": SCHEMA}
    arguments: dict[str, Any] = {
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look."},
            *(turns or []),
        ],
        "tools": [{"type": "function", "function": function}],
    }
    async with openai(bridge) as client:
        if not stream:
            return await client.chat.completions.create(**arguments)
        arguments |= {"stream_options": {"include_usage": True}}
        async with client.chat.completions.stream(**arguments) as answer:
            thought = opaque = ""
            async for event in answer:
                if event.type == "chunk" and event.chunk.choices:
                    extra = event.chunk.choices[0].delta.model_extra or {}
                    thought += str(
                        extra.get("reasoning_content") or extra.get("reasoning_text") or ""
                    )
                    opaque = extra.get("reasoning_opaque") or opaque
            final = await answer.get_final_completion()
        fields = final.choices[0].message.model_extra
        assert fields is not None
        fields.update({"reasoning_content": thought, "reasoning_opaque": opaque})
        return final


def seen_completion(completion: Any) -> Seen:
    import json

    message = completion.choices[0].message
    extra = message.model_extra or {}
    return Seen(
        message.content or "",
        [
            (call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
        ],
        str(extra.get("reasoning_content") or extra.get("reasoning_text") or ""),
        (completion.usage.prompt_tokens, completion.usage.completion_tokens),
    )


async def ask_responses(bridge: Bridged, *, stream: bool, turns: list[Any] | None = None) -> Any:
    tool = {"type": "function", "name": "view", "description": "Shows.", "parameters": SCHEMA}
    arguments: dict[str, Any] = {
        "model": "scripted",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Look."},
            *(turns or []),
        ],
        "tools": [{**tool, "strict": False}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    async with openai(bridge) as client:
        if not stream:
            return await client.responses.create(**arguments)
        async with client.responses.stream(**arguments) as answer:
            async for _ in answer:
                pass
            return await answer.get_final_response()


def seen_response(response: Any) -> Seen:
    import json

    return Seen(
        response.output_text,
        [
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ],
        "".join(
            part.text
            for item in response.output
            if item.type == "reasoning"
            for part in item.summary
        ),
        (response.usage.input_tokens, response.usage.output_tokens),
    )


CLIENTS = {
    "anthropic-messages": (ask_messages, seen_message),
    "openai-chat": (ask_chat, seen_completion),
    "openai-responses": (ask_responses, seen_response),
}


@pytest.mark.proves("AMLMS-01", "AMLMS-03", "AMLMS-05", "AMLMS-07")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("route", WIRES)
async def test_a_package_gets_text_reasoning_calls_and_usage(
    tmp_path: Path, route: str, wire: str, stream: bool
) -> None:
    ask, read = CLIENTS[route]
    async with bridged(tmp_path, wire, [ANSWER]) as bridge:
        seen = read(await ask(bridge, stream=stream))
        assert seen.text == ANSWER["text"]
        assert [arguments for _, arguments in seen.calls] == ARGUMENTS
        assert seen.thought == "Two files matter here."
        assert seen.tokens == (120, 34)
        (call,) = bridge.calls
        assert (call.status, call.input_tokens, call.output_tokens) == ("success", 120, 34)
        assert (bridge.server.usage.input_tokens, bridge.server.usage.output_tokens) == (120, 34)
        (sent,) = bridge.server.requests
        assert bridge.key not in str(sent.headers)
        assert sent.served.system == "Be brief."
        assert [tool.name for tool in sent.served.tools] == ["view"]
