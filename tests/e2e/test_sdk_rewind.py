"""Rewind through the official SDK: its own types read what we answer."""

from copilot.generated.rpc import (
    HistoryPreviewRewindRequest,
    HistoryRewindChangeType,
    HistoryRewindMode,
    HistoryRewindOutcome,
    HistoryRewindRequest,
)

from sdkkit import Sdk, talking

CREATE = {"name": "create", "arguments": {"path": "new.txt", "file_text": "one\ntwo\n"}}


async def test_an_sdk_client_goes_back_in_conversation_and_files(sdk: Sdk) -> None:
    replies = [{"tools": [CREATE]}, {"text": "Done."}, {"text": "Again."}]
    async with talking(sdk, replies) as talk:
        await talk.say("first")
        history = talk.session.rpc.history
        listed = await history.list_rewind_points()
        (point,) = listed.points
        assert listed.file_change_tracking_enabled
        assert (point.user_message, point.file_count, point.lines_added) == ("first", 1, 2)
        preview = await history.preview_rewind(HistoryPreviewRewindRequest(event_id=point.event_id))
        (file,) = preview.files
        assert file.change_type is HistoryRewindChangeType.CREATED
        rewound = await history.rewind(
            HistoryRewindRequest(
                event_id=point.event_id, mode=HistoryRewindMode.CONVERSATION_AND_FILES
            )
        )
        assert rewound.outcome is HistoryRewindOutcome.SUCCESS
        assert rewound.restored_files == [file.path]
        await talk.say("second")
        assert "first" not in str(talk.shown()[-1])
