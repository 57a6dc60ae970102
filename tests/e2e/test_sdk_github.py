"""SDK clients with GitHub's service: the default model, tokens of sessions, accounts."""

import json
from typing import Any

import httpx
import pytest
from copilot import CopilotRequestHandler
from copilot.copilot_request_handler import CopilotWebSocketHandler
from copilot.session import PermissionHandler

from githubkit import DEFAULT, TOKEN, GitHub, github, model
from sdkkit import LIMIT, Heard, Sdk


async def ask(session: Any, prompt: str = "hi") -> str:
    event = await session.send_and_wait(prompt, timeout=LIMIT)
    return "" if event is None else str(event.data.content)


def models_of(server: GitHub) -> list[str]:
    return [request.json["model"] for request in server.requests]


async def test_a_session_without_a_model_uses_the_default_that_github_marks(sdk: Sdk) -> None:
    async with github(sdk, [{"text": "ok"}]) as server, sdk.client() as client:
        heard = Heard()
        session = await client.create_session(
            on_permission_request=PermissionHandler.approve_all, on_event=heard
        )
        assert await ask(session) == "ok"
        assert (await session.rpc.model.get_current()).model_id == DEFAULT
        assert models_of(server) == [DEFAULT]
        assert server.tokens == [TOKEN]
    (change,) = heard.of("session.model_change")
    assert change.new_model == DEFAULT


@pytest.mark.parametrize("name", ["other-model", "responses-model", "messages-model"])
async def test_a_named_model_is_asked_at_its_own_endpoint(sdk: Sdk, name: str) -> None:
    async with github(sdk, [{"text": "ok"}]) as server, sdk.client() as client:
        session = await client.create_session(model=name)
        assert await ask(session) == "ok"
        assert models_of(server) == [name]


async def test_a_model_that_github_does_not_list_is_refused_by_name(sdk: Sdk) -> None:
    async with github(sdk, []) as server, sdk.client() as client:
        heard = Heard()
        session = await client.create_session(model="gpt-4.1", on_event=heard)
        with pytest.raises(Exception, match=r"gpt-4\.1"):
            await ask(session)
        assert "gpt-4.1" in heard.of("session.error")[0].message
        assert not server.requests


class Forwarding(CopilotRequestHandler):
    """Makes the model calls of sessions, over HTTP and over WebSockets."""

    def __init__(self, http: httpx.AsyncClient, events: tuple[dict[str, Any], ...] = ()) -> None:
        self.seen: list[str] = []
        self.messages: list[Any] = []
        self._http = http
        self._events = events

    async def send_request(self, request: Any, ctx: Any) -> Any:
        self.seen.append(f"{ctx.transport} {request.method} {request.url.path}")
        return await self._http.send(request, stream=True)

    async def open_websocket(self, ctx: Any) -> CopilotWebSocketHandler:
        self.seen.append(f"{ctx.transport} {ctx.url.partition(':')[0]}")
        return Answering(ctx, self.messages, self._events)


class Answering(CopilotWebSocketHandler):
    """Answers each message with the same events."""

    def __init__(self, ctx: Any, messages: list[Any], events: tuple[dict[str, Any], ...]) -> None:
        super().__init__(ctx)
        self._messages = messages
        self._events = events

    async def send_request_message(self, data: str | bytes) -> None:
        self._messages.append(json.loads(data))
        for event in self._events:
            await self.send_response_message(json.dumps(event))


async def test_a_client_that_makes_the_calls_gets_githubs_default_model(sdk: Sdk) -> None:
    async with github(sdk, [{"text": "ok"}]) as server, httpx.AsyncClient(timeout=None) as http:
        handler = Forwarding(http)
        async with sdk.client(request_handler=handler) as client:
            session = await client.create_session()
            assert await ask(session) == "ok"
        assert models_of(server) == [DEFAULT]
        assert server.tokens == [TOKEN]
    assert handler.seen == ["http GET /models", "http POST /chat/completions"]


OUTPUT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "from the socket", "annotations": []}],
}
EVENTS = (
    {"type": "response.output_text.delta", "output_index": 0, "delta": "from the socket"},
    {"type": "response.output_item.done", "output_index": 0, "item": OUTPUT},
    {
        "type": "response.completed",
        "response": {
            "id": "r1",
            "model": "socket-model",
            "status": "completed",
            "output": [OUTPUT],
        },
    },
)


@pytest.mark.parametrize("enabled", [True, False])
async def test_model_calls_go_over_a_web_socket_where_the_model_offers_it(
    sdk: Sdk, enabled: bool
) -> None:
    endpoints = ["/responses", "ws:/responses"]
    async with (
        github(sdk, [{"text": "over http"}]) as server,
        httpx.AsyncClient(timeout=None) as http,
    ):
        server.models.append(model("socket-model", supported_endpoints=endpoints))
        handler = Forwarding(http, EVENTS)
        async with sdk.client(request_handler=handler) as client:
            session = await client.create_session(
                model="socket-model", capi={"enable_web_socket_responses": enabled}
            )
            assert await ask(session) == ("from the socket" if enabled else "over http")
    if enabled:
        assert handler.seen == ["http GET /models", "websocket ws"]
        (message,) = handler.messages
        assert message["type"] == "response.create"
        assert message["model"] == "socket-model"
        assert "stream" not in message
    else:
        assert handler.seen == ["http GET /models", "http POST /responses"]
