"""Texts that clients keep with sessions, over the official client."""

from typing import Any

import pytest
from copilot.generated import rpc

from sdkkit import Sdk, talking_here


async def test_a_client_keeps_texts_with_a_session(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        metadata = talk.session.rpc.metadata

        async def update(**changes: Any) -> dict[str, str]:
            found: dict[str, str] = await metadata.update_client_metadata(
                rpc.MetadataUpdateClientMetadataRequest(**changes)
            )
            return found

        assert await metadata.get_client_metadata() == {}
        assert await update(set={"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
        assert await update(remove=["a"], set={"c": "3"}) == {"b": "2", "c": "3"}
        assert await update(remove=["b"], set={"b": "4"}) == {"b": "4", "c": "3"}
        for broken in (
            {"": "x"},
            {"k" * 257: "x"},
            {"k": "x" * 16_385},
            {str(number): "x" for number in range(129)},
            {str(number): "x" * 16_000 for number in range(5)},
        ):
            with pytest.raises(Exception, match="client metadata is invalid"):
                await update(set=broken)
        assert await update(clear=True, set={"z": "5"}) == {"z": "5"}
        assert await metadata.get_client_metadata() == {"z": "5"}
    assert all("z" not in log.read_text().split('"') for log in sdk.logs())


async def test_the_texts_of_stored_sessions_are_read_without_opening_them(sdk: Sdk) -> None:
    async with talking_here(sdk, []) as talk:
        first = talk.session.session_id
        await talk.session.rpc.metadata.update_client_metadata(
            rpc.MetadataUpdateClientMetadataRequest(set={"a": "1", "b": "2"})
        )
        await talk.session.disconnect()
        others = {}
        for name, text in (("corrupt", "{"), ("unsupportedVersion", '{"version":9}')):
            session = await talk.client.create_session()
            await session.disconnect()
            folder = sdk.home / "session-state" / session.session_id
            (folder / "client-metadata.json").write_text(text)
            others[session.session_id] = name
        ids = [first, "nope", *others]
        request = rpc.SessionsGetClientMetadataRequest(session_ids=ids, keys=["b", "c"])
        found = await talk.client.rpc.sessions.get_client_metadata(request)
        raw = [one if isinstance(one, dict) else one.to_dict() for one in found]
        assert [one["status"] for one in raw] == ["ok", "notFound", *others.values()]
        assert raw[0]["metadata"] == {"b": "2"}
