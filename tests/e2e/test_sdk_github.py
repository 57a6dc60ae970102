"""SDK clients with GitHub's service: the default model, tokens of sessions, accounts."""

import json
from typing import Any

import httpx
import pytest
from copilot import (
    CopilotRequestHandler,
    ModelCapabilitiesOverride,
    ModelSupportsOverride,
)
from copilot.copilot_request_handler import CopilotWebSocketHandler
from copilot.session import PermissionHandler

from githubkit import DEFAULT, TOKEN, GitHub, github, model
from sdkkit import LIMIT, Heard, Sdk, make_tool, use

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


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


async def test_arguments_that_a_hook_changed_are_shown_as_the_call_was_made(sdk: Sdk) -> None:
    async def change(_: Any, __: Any) -> dict[str, Any]:
        return {"modifiedArgs": {"key": "changed"}, "suppressOutput": True}

    async with (
        github(sdk, [use("mine", key="original"), {"text": "ok"}]) as server,
        sdk.client() as client,
    ):
        session = await client.create_session(
            on_permission_request=PermissionHandler.approve_all,
            tools=[make_tool("mine", lambda key: f"got {key}")],
            hooks={"on_pre_tool_use": change},
        )
        assert await ask(session) == "ok"
        call, result = server.requests[-1].json["messages"][-2:]
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"key": "changed"}
    assert result["content"] == "got changed"


async def test_an_approved_plan_is_told_in_the_form_of_the_reference(sdk: Sdk) -> None:
    async def approve(_: Any, __: Any) -> dict[str, Any]:
        return {"approved": True, "selectedAction": "interactive"}

    plan = use("exit_plan_mode", summary="Paint it", actions=["interactive", "exit_only"])
    async with github(sdk, [plan, {"text": "ok"}]) as server, sdk.client() as client:
        session = await client.create_session(
            on_permission_request=PermissionHandler.approve_all, on_exit_plan_mode_request=approve
        )
        await session.send_and_wait("plan it", agent_mode="plan", timeout=LIMIT)
        result = server.requests[-1].json["messages"][-1]
    assert result["role"] == "tool"
    assert result["content"].startswith(
        "Plan approved! Exited plan mode.\n\nYou are now in interactive mode."
    )


async def test_the_limits_of_a_session_are_told_after_the_prompt(sdk: Sdk) -> None:
    async with github(sdk, [{"text": "ok"}]) as server, sdk.client() as client:
        server.models.append(model("gpt-4.1"))
        session = await client.create_session(
            model="gpt-4.1", session_limits={"max_ai_credits": 30.0}
        )
        assert await ask(session) == "ok"
        prompt, status = server.requests[-1].json["messages"][-2:]
    assert prompt["content"].endswith("hi")
    assert status["role"] == "user"
    assert "<session_limits_status>\nRemaining session limits: 30" in status["content"]


async def test_images_are_sent_again_once_the_model_may_see_them(sdk: Sdk) -> None:
    blind = ModelCapabilitiesOverride(supports=ModelSupportsOverride(vision=False))
    seeing = ModelCapabilitiesOverride(supports=ModelSupportsOverride(vision=True))
    async with (
        github(sdk, {"replies": [], "otherwise": {"text": "ok"}}) as server,
        sdk.client() as client,
    ):
        session = await client.create_session(model_capabilities=blind)
        blob = {"type": "blob", "data": DOT, "mimeType": "image/png", "displayName": "dot.png"}
        await session.send_and_wait("look", attachments=[blob], timeout=LIMIT)
        for capabilities in (seeing, blind):
            await session.set_model(DEFAULT, model_capabilities=capabilities)
            await ask(session)
        shown = ["image_url" in request.body.decode() for request in server.requests]
        vision = ["copilot-vision-request" in request.headers for request in server.requests]
    assert shown == [False, True, False]
    assert vision == shown


RESPONSE = {
    "id": "r1",
    "object": "response",
    "model": "responses-model",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "Tides follow the moon.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url": "https://tides.test/",
                            "title": "Tides",
                            "start_index": 0,
                            "end_index": 21,
                        }
                    ],
                }
            ],
        }
    ],
}
MESSAGE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "messages-model",
    "stop_reason": "end_turn",
    "content": [
        {"type": "text", "text": "So: "},
        {
            "type": "text",
            "text": "tides follow the moon.",
            "citations": [
                {
                    "type": "page_location",
                    "cited_text": "The moon pulls.",
                    "document_index": 0,
                    "document_title": "Tides",
                    "start_page_number": 2,
                    "end_page_number": 3,
                }
            ],
        },
    ],
}


@pytest.mark.parametrize("enabled", [True, None])
@pytest.mark.parametrize(
    ("name", "reply", "span"),
    [("responses-model", RESPONSE, (0, 21)), ("messages-model", MESSAGE, (4, 26))],
)
async def test_sources_that_a_service_names_are_citations_where_a_client_wants_them(
    sdk: Sdk, name: str, reply: Any, span: tuple[int, int], enabled: bool | None
) -> None:
    raw = {"raw": json.dumps(reply)}
    async with github(sdk, [raw]), sdk.client() as client:
        heard = Heard()
        session = await client.create_session(model=name, enable_citations=enabled, on_event=heard)
        await ask(session)
    (message,) = heard.of("assistant.message")
    if not enabled:
        assert message.citations is None
        return
    (source,), (found,) = message.citations.sources, message.citations.spans
    assert (found.start_index, found.end_index) == span
    assert source.title == "Tides"
    (reference,) = found.references
    assert reference.source_id == source.id
    if name == "messages-model":
        assert (reference.cited_text, reference.location.start_page) == ("The moon pulls.", 2)
