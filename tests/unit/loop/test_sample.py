"""One model call, and the events that keep what it answered."""

from typing import Any

import pytest

from loopkit import change_agent, drained, make_run
from trimtab.contracts.errors import ModelError


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


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"error": {"status": 500}}, "api"),
        ({"text": "cut " * 20, "break": {"how": "close", "after": 1}}, "transport"),
    ],
)
async def test_a_failed_call_says_whether_the_service_or_the_connection_failed(
    reply: Any, kind: str
) -> None:
    run = make_run([reply], "go")
    with pytest.raises(ModelError):
        await drained(run)
    (failure,) = run.session.of("model.call_failure")  # type: ignore[attr-defined]
    assert failure.failure_kind == kind


async def test_the_cost_of_a_broken_answer_is_estimated_from_its_length() -> None:
    run = make_run([{"text": "x" * 400, "break": {"how": "close", "after": 10}}], "go")
    with pytest.raises(ModelError):
        await drained(run)
    (recorded,) = run.session.of("trimtab.model_call")  # type: ignore[attr-defined]
    assert len(recorded.partial_content) <= 400
    assert recorded.estimated_tokens == len(recorded.partial_content) // 4


@pytest.mark.parametrize(("depth", "purpose"), [(0, "main"), (1, "subagent"), (2, "subagent")])
async def test_a_recorded_call_says_whether_a_sub_agent_made_it(depth: int, purpose: str) -> None:
    run = make_run(["Done."], "go")
    change_agent(run, depth=depth)
    (recorded,) = (await drained(run)).of("trimtab.model_call")
    assert recorded.purpose == purpose
