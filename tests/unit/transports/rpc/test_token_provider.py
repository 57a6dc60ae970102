"""GitHub tokens that a client supplies and renews, over the official client."""

import asyncio
from typing import Any

import pytest

from githubkit import INVALID_TOKEN, OTHER_TOKEN, TOKEN, GitHub
from sdkkit import LIMIT, Sdk, talking_here

DONE = {"text": "Done."}


async def test_a_client_supplies_and_renews_the_token_of_a_session(sdk: Sdk) -> None:
    asked: list[str] = []
    renewed = asyncio.Event()

    async def supply(request: Any) -> Any:
        asked.append(request["reason"].value)
        if len(asked) > 1:
            renewed.set()
            return {"kind": "token", "accessToken": OTHER_TOKEN, "expiresIn": 28_800}
        return {"kind": "token", "accessToken": TOKEN, "expiresIn": 1}

    async with talking_here(sdk, [DONE], github_token_provider=supply) as talk:
        async with asyncio.timeout(LIMIT):
            await renewed.wait()
            while (await talk.session.rpc.git_hub_auth.get_status()).login != "second-user":
                continue
        await talk.say("hello")
        assert isinstance(talk.server, GitHub)
        assert talk.server.tokens[-1] == OTHER_TOKEN
        assert asked == ["initial", "refresh"]
    assert all(token not in log.read_text() for log in sdk.logs() for token in (TOKEN, OTHER_TOKEN))


async def test_a_session_without_the_token_it_needs_is_not_created(sdk: Sdk) -> None:
    async def cancel(_: Any) -> Any:
        return {"kind": "cancelled"}

    async def fail(_: Any) -> Any:
        raise RuntimeError("no network")

    async def mislead(_: Any) -> Any:
        return {"kind": "token", "accessToken": INVALID_TOKEN, "expiresIn": 100}

    async with talking_here(sdk, []) as talk:
        for provider, reason in (
            (cancel, "gave no token"),
            (fail, "token provider failed"),
            (mislead, "token"),
        ):
            with pytest.raises(Exception, match=reason):
                await talk.client.create_session(github_token_provider=provider)
        assert isinstance(talk.server, GitHub)
        talk.server.refused.clear()
