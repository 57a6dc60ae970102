"""Requests no client would send: python tests/properties/bridge_fuzz.py [COUNT] [SEED].

A crash is an exception that left the bridge's handler, an answer with status 500, or an answer that
is not JSON in the shape of a vendor; a hang is a request that is not answered.
"""

import asyncio
import copy
import gc
import json
import os
import random
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from bridgekit import ROUTES, WIRES, Bridged, bridged

PATIENCE = 60.0
PIXEL = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
TOOL = {"name": "view", "parameters": {"type": "object"}, "input_schema": {"type": "object"}}
SEEDS: dict[str, dict[str, Any]] = {
    "anthropic-messages": {
        "model": "scripted",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": PIXEL}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "trimtab-reasoning.x"},
                    {"type": "tool_use", "id": "a", "name": "view", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}],
            },
            {"role": "system", "content": "note"},
        ],
        "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "tool", "name": "view"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"format": {"type": "json_schema", "schema": {}}, "effort": "low"},
        "metadata": {"user_id": "u"},
        "stop_sequences": ["x"],
        "temperature": 1,
        "stream": True,
    },
    "openai-chat": {
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_opaque": "trimtab-reasoning.x",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "v", "arguments": "{"}},
                    {"id": "b", "type": "custom", "custom": {"name": "c", "input": "i"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r"}]},
        ],
        "tools": [
            {"type": "function", "function": TOOL},
            {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "view"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "stop": ["x"],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "openai-responses": {
        "model": "scripted",
        "instructions": "s",
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
            {"type": "additional_tools", "tools": [{"type": "custom", "name": "c"}]},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "t"}]},
            {"type": "function_call", "call_id": "a", "name": "v", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": [{"text": "o"}]},
        ],
        "tools": [
            {"type": "namespace", "name": "n", "tools": [{"type": "function", **TOOL}]},
            {"type": "web_search"},
        ],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
        "tool_choice": {"type": "function", "name": "n__view"},
        "stream": True,
    },
}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, 2**70, "", "x", "\ud800", "\x00", [], {}, [[]], [None]),
    *([{}], {"type": None}, {"": {}}, "é" * 3000, {"a": {"b": [1, {"c": []}]}}),
)


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        found.append((value, key))
        if isinstance(item, dict | list):
            places(item, found)
    return found


def mangle(random_: random.Random, route: str) -> bytes:
    body = copy.deepcopy(SEEDS[route])
    for _ in range(random_.randint(1, 4)):
        holder, key = random_.choice(places(body, []))
        way = random_.random()
        if way < 0.2:
            del holder[key]
            if not body:
                break
        elif way < 0.3 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif way < 0.4 and isinstance(holder, dict):
            holder[random_.choice(("type", "role", "content", "name", "id"))] = copy.deepcopy(
                holder[key]
            )
        else:
            holder[key] = copy.deepcopy(random_.choice(VALUES))
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    if random_.random() < 0.05:
        cut = random_.randrange(len(data) + 1)
        data = data[:cut] + random_.randbytes(random_.randrange(4)) + data[cut + 1 :]
    return data


async def send(bridge: Bridged, path: str, body: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", bridge.bridge.port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nx-api-key: {bridge.key}\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        writer.write(head.encode() + body)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()
    status, _, rest = answer.partition(b"\r\n")
    if not answer:
        return 0, b""
    return int(status.split(b" ")[1]), rest.partition(b"\r\n\r\n")[2]


def find_bug(status: int, body: bytes, request: bytes) -> str:
    shown = request[:300].decode("utf-8", "replace")
    if status in (200, 429, 402):
        return ""
    if status not in (400, 404):
        return f"status {status}: {body[:200]!r} to {shown}"
    try:
        error = json.loads(body)["error"]
        ok = isinstance(error["message"], str)
    except (ValueError, KeyError, TypeError):
        ok = False
    return "" if ok else f"no error of a vendor: {body[:200]!r} to {shown}"


async def fuzz(count: int, seed: int, folder: Path) -> list[str]:
    """Send `count` mangled requests over all pairs; return what went wrong."""
    bugs: list[str] = []

    def take(_: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        stack = "".join(traceback.format_exception(error)) if error else ""
        bugs.append(f"an exception left its task: {context['message']} {stack[-2000:]}")

    asyncio.get_running_loop().set_exception_handler(take)
    random_ = random.Random(seed)
    for wire in WIRES:
        async with bridged(folder / wire, wire, {"otherwise": "ok"}) as bridge:
            for number in range(count // len(WIRES)):
                route = WIRES[number % len(WIRES)]
                body = mangle(random_, route)
                path = ROUTES[route]
                if route == "anthropic-messages" and number % 10 == 0:
                    path += "/count_tokens"
                if bug := find_bug(*await send(bridge, path, body), body):
                    bugs.append(f"{route} on {wire}: {bug}")
            status, _ = await send(
                bridge,
                "/v1/chat/completions",
                json.dumps(
                    {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]}
                ).encode(),
            )
            if status != 200:
                bugs.append(f"the bridge on {wire} no longer answers: {status}")
    gc.collect()  # tasks report their exceptions when they are collected
    return bugs


if __name__ == "__main__":
    amount = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as home:
        for name in WIRES:
            os.mkdir(os.path.join(home, name))
        problems = asyncio.run(fuzz(amount, start, Path(home)))
    print("\n".join(problems[:20]))
    print(f"{amount} mangled requests, seed {start}: {len(problems)} crashes")
    sys.exit(bool(problems))
