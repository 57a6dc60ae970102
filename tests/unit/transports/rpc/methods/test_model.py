"""Models and the address of their service, over the official client."""

import pytest

from githubkit import TOKEN
from sdkkit import Sdk, talking_here


async def test_the_key_of_the_service_is_told_only_if_the_owner_allows_it(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        with pytest.raises(Exception, match="set COPILOT_ALLOW_GET_PROVIDER_ENDPOINT=true"):
            await talk.session.rpc.provider.get_endpoint()
    sdk.env["COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"] = "true"
    async with talking_here(sdk, []) as talk:
        assert (await talk.session.rpc.provider.get_endpoint()).api_key == TOKEN
