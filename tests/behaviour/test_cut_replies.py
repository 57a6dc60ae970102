"""Replies that are filtered, cut or malformed: the run goes on, or says that it is not finished."""

import pytest

from trimtab.testing.playing import play, texts


@pytest.mark.parametrize("reason", ["content_filter", "refusal"])
async def test_a_filtered_answer_is_not_a_success(reason: str) -> None:
    played = await play([{"text": "I", "finish": reason}], "go")
    assert played.stop.reason == "error"
    assert played.stop.exit_code == 8
    assert "filtered the answer" in played.stop.message


async def test_an_answer_cut_at_the_output_limit_is_said_to_be_unfinished() -> None:
    played = await play([{"text": "Once upon a", "finish": "length"}], "go")
    assert (played.stop.reason, played.stop.exit_code) == ("output_limit", 3)
    (warning,) = [
        data for data in played.of("session.warning") if data.warning_type == "output_limit"
    ]
    assert warning.message.startswith("The reply was cut at the output limit")


async def test_an_empty_answer_is_not_a_success() -> None:
    """A script took silence with exit code 0 for an answer."""
    played = await play([{"text": " "}], "go")
    assert (played.stop.reason, played.stop.exit_code) == ("empty_answer", 3)
    (warning,) = [
        data for data in played.of("session.warning") if data.warning_type == "empty_answer"
    ]
    assert warning.message.startswith("The model answered nothing")


async def test_a_model_may_end_without_a_word_after_its_work() -> None:
    call = {"name": "view", "arguments": {"path": "."}}
    played = await play([{"tools": [call]}, {"text": ""}], "go")
    assert (played.stop.reason, played.stop.exit_code) == ("end_turn", 0)


DEEP = [
    "[" * 100_000,
    '{"command":' * 50_000,
    '{"command": "x", "description": ' + "[" * 200_000 + "]" * 200_000 + "}",
]


@pytest.mark.parametrize("arguments", DEEP, ids=["list", "object", "inside"])
async def test_arguments_that_are_nested_too_deeply_are_told_to_the_model(arguments: str) -> None:
    """They ended the run with an internal error."""
    played = await play([{"tools": [{"name": "bash", "arguments": arguments}]}, "done"], "go")
    assert played.stop.reason == "end_turn"
    assert (
        "nested too deeply" in texts(played.requests)[-1]
        or "malformed" in texts(played.requests)[-1]
    )
