"""SDK clients with GitHub's service: the default model, tokens of sessions, accounts."""

from typing import Any

import pytest
from copilot.session import PermissionHandler

from githubkit import DEFAULT, TOKEN, GitHub, github
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
