"""Whatever a server sends, nothing of ours breaks: messages, lists and results of any shape."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpkit import server
from trimtab.contracts.events.envelope import JsonObject
from trimtab.mcp.client import McpClient
from trimtab.mcp.codec import decode
from trimtab.mcp.listing import read_tools
from trimtab.mcp.messages import RemoteError, ServerProblem
from trimtab.mcp.result import read_result
from trimtab.mcp.server_requests import ServerRequests
from trimtab.mcp.transport import NO_HEADERS, Deliver
from trimtab.tools.arguments import read_arguments

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
WORDS = st.sampled_from(
    (
        *("type", "text", "content", "data", "resource", "uri", "name", "inputSchema", "$ref"),
        *("properties", "required", "items", "annotations", "readOnlyHint", "title", "method"),
        *("id", "result", "error", "message", "params", "progressToken", "description", "enum"),
    )
)
VALUES = st.sampled_from(("object", "array", "text", "image", "resource", "roots/list", "ping", 1))


def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(WORDS | TEXT, inner | VALUES, max_size=6)


ANYTHING = st.recursive(LEAVES, grow, max_leaves=20)
OBJECT = st.dictionaries(WORDS, ANYTHING | VALUES, max_size=8)


def received(value: Any) -> list[Any]:
    """As it comes out of the wire, where that is possible."""
    return list(decode(json.dumps(value).encode()))


@given(st.lists(OBJECT, max_size=5))
def test_any_list_of_tools_is_read_and_what_is_kept_can_be_sent_and_called(entries: Any) -> None:
    for found in received({"tools": entries}):
        for tool in read_tools(found["tools"], server()).tools:
            msgspec.json.encode(tool)
            assert tool.parameters["type"] == "object"


@given(OBJECT, st.dictionaries(TEXT, LEAVES, max_size=4))
def test_any_schema_that_is_kept_can_judge_arguments(schema: Any, args: Any) -> None:
    entry = {"name": "a", "inputSchema": {**schema, "type": "object"}}
    for found in received({"tools": [entry]}):
        for tool in read_tools(found["tools"], server()).tools:
            from trimtab.contracts.provider import ToolSpec

            spec = ToolSpec(name="a", description="", parameters=tool.parameters)
            assert read_arguments(spec, json.dumps(args)) is not None


@given(OBJECT | st.fixed_dictionaries({"content": st.lists(OBJECT, max_size=4)}))
def test_any_result_is_a_text_that_can_be_sent(answer: Any) -> None:
    for found in received(answer):
        result = read_result(found, "hidden_characters")
        assert result.text
        result.text.encode()


class Silent:
    """A channel to a server that is heard and never answered by hand."""

    def __init__(self) -> None:
        self.deliver: Deliver = lambda _: None
        self.sent: list[JsonObject] = []

    def open(self, deliver: Deliver, lost: Any) -> None:
        self.deliver = deliver

    cancels_by_closing = False
    noise = ""

    async def send(self, message: JsonObject, headers: Mapping[str, str] = NO_HEADERS) -> bool:
        self.sent.append(message)
        return True

    def ready(self, version: str) -> None:
        pass

    async def aclose(self) -> None:
        pass


@given(st.lists(OBJECT, max_size=10))
async def test_any_messages_leave_a_client_that_can_be_used(messages: Any) -> None:
    channel = Silent()
    client = McpClient(channel, ServerRequests("s", "/somewhere", {}), lambda *_: None)
    with pytest.raises((TimeoutError, ServerProblem, RemoteError)):
        await client.start(0.0)
    for message in messages:
        for one in received(message):
            channel.deliver(one)
    await client.aclose()
    assert client.lost == "it was stopped"


class Unanswered:
    """Answers of a person who never decides; says when somebody asks and when that ends."""

    capabilities: JsonObject = {}

    def __init__(self) -> None:
        self.asked, self.withdrawn = asyncio.Event(), asyncio.Event()

    def asks(self, method: str) -> bool:
        return True

    async def answer(self, method: str, params: JsonObject, number: str | int) -> JsonObject:
        self.asked.set()
        never: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        try:
            return await never
        finally:
            self.withdrawn.set()


async def test_a_question_that_the_server_cancels_is_withdrawn() -> None:
    channel, answers = Silent(), Unanswered()
    client = McpClient(channel, answers, lambda *_: None)
    with pytest.raises(TimeoutError):
        await client.start(0.0)
    channel.deliver({"id": "q", "method": "elicitation/create", "params": {}})
    async with asyncio.timeout(50):
        await answers.asked.wait()
        channel.deliver({"method": "notifications/cancelled", "params": {"requestId": "q"}})
        await answers.withdrawn.wait()
    await client.aclose()
    assert not any(message.get("id") == "q" for message in channel.sent)
