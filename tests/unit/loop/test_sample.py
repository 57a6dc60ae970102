"""One model call, and the events that keep what it answered."""

from typing import Any

import pytest

from loopkit import drained, make_run


@pytest.mark.proves("EVT-12")
@pytest.mark.parametrize(
    ("thought", "opaque", "encrypted"),
    [
        ({"text": "First I look."}, None, None),
        ({"opaque": "c2VjcmV0"}, "c2VjcmV0", None),
        ({"encrypted": "gAAA"}, None, "gAAA"),
        ({"text": "So.", "opaque": "c2VjcmV0"}, "c2VjcmV0", None),
    ],
)
async def test_reasoning_of_any_kind_is_kept_with_the_message(
    thought: dict[str, Any], opaque: str | None, encrypted: str | None
) -> None:
    session = await drained(make_run([{"text": "Done.", "reasoning": thought}], "go"))
    (shown,), (message,) = session.of("assistant.reasoning"), session.of("assistant.message")
    assert shown.content == thought.get("text", "")
    assert shown.reasoning_opaque == (opaque or encrypted)
    assert message.reasoning_text == thought.get("text")
    assert (message.reasoning_opaque, message.encrypted_content) == (opaque, encrypted)


async def test_a_reply_without_reasoning_has_no_such_event() -> None:
    session = await drained(make_run([{"text": "Done."}], "go"))
    assert session.of("assistant.reasoning") == []
