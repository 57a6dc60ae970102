"""Sessions that are opened, read and deleted by their ids, over the official client."""

from typing import Any

import pytest
from copilot.generated import rpc

from sdkkit import Sdk, talking_here

DONE = {"text": "Done."}


async def test_sessions_are_opened_by_kind(sdk: Sdk) -> None:
    async with talking_here(sdk, [DONE]) as talk:
        sessions = talk.client.rpc.sessions
        await talk.say("hello")
        created = await sessions.open(
            rpc.SessionsOpenCreate(options=rpc.SessionOpenOptions(name="Other", model="scripted"))
        )
        assert created.status.value == "created"
        metadata = await talk.client.get_session_metadata(created.session_id)
        assert metadata is not None
        for request, status in (
            (rpc.SessionsOpenResume(session_id=created.session_id), "resumed"),
            (rpc.SessionsOpenAttach(session_id=created.session_id), "resumed"),
            (rpc.SessionsOpenResume(session_id="nope"), "not_found"),
            (rpc.SessionsOpenAttach(session_id="nope"), "not_found"),
        ):
            opened = await sessions.open(request)
            assert opened.status.value == status
            assert opened.session_id == (created.session_id if status == "resumed" else None)
        elsewhere = rpc.SessionContext(cwd="/elsewhere")
        last = await sessions.open(rpc.SessionsOpenResumeLast(context=elsewhere))
        assert last.status.value == "not_found"
        assert (await sessions.open(rpc.SessionsOpenResumeLast())).status.value == "resumed"
        await sessions.close(rpc.SessionsCloseRequest(session_id=created.session_id))
        gone = await sessions.open(rpc.SessionsOpenAttach(session_id=created.session_id))
        assert gone.status.value == "not_found"
        with pytest.raises(Exception, match="needs GitHub's service"):
            await talk.client._client.request("sessions.open", {"kind": "cloud"})


async def test_stored_events_are_read_in_pages(sdk: Sdk) -> None:
    async with talking_here(sdk, [DONE] * 2) as talk:
        await talk.say("hello")
        whole = await talk.session.get_events()
        session_id = talk.session.session_id

        async def read(**params: Any) -> Any:
            request = rpc.SessionsReadPersistedEventsRequest(session_id=session_id, **params)
            return await talk.client.rpc.sessions.read_persisted_events(request)

        first = await read(max=2)
        await talk.say("later")
        found, page = list(first.events), first
        while page.has_more:
            page = await read(max=2, cursor=page.cursor)
            found += page.events
        assert [event.id for event in found] == [event.id for event in whole]
        raw = {"sessionId": session_id, "max": 1, "direction": "backward"}
        last = await talk.client._client.request("sessions.readPersistedEvents", raw)
        before = await read(max=1, cursor=last["cursor"])
        newest = [str(event.id) for event in await talk.session.get_events()]
        assert [last["events"][0]["id"], str(before.events[0].id)] == newest[:-3:-1]
        for cursor in ("bogus", "b9/9999999", "999/1", "1/99999999999999"):
            lost = await read(cursor=cursor)
            assert (lost.cursor_status.value, lost.events, lost.has_more) == ("expired", [], False)
        session_id = "nope"
        with pytest.raises(Exception, match="journal is unavailable for session nope"):
            await read()


async def test_used_sessions_are_listed_and_one_is_deleted(sdk: Sdk) -> None:
    async with talking_here(sdk, [DONE]) as talk:
        await talk.client.create_session()
        await talk.say("hello")
        ask = talk.client._client.request
        used = await ask("sessions.listNonEmptySessionIds", {})
        assert used == {"sessionIds": [talk.session.session_id]}
        assert await ask("sessions.listNonEmptySessionIds", {"limit": 0}) == {"sessionIds": []}
        about = {"sessionId": talk.session.session_id}
        assert await ask("sessions.getBoardEntryCount", about) == {}
        assert await ask("sessions.getPersistedRemoteSteerable", about) == {}
        assert await ask("sessions.delete", about) == {}
        with pytest.raises(Exception, match="Session file not found"):
            await ask("sessions.delete", about)
        assert await talk.client.get_session_metadata(talk.session.session_id) is None
