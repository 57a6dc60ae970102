"""Failed model calls: visible delays, fallback models, smaller requests."""

import asyncio
from typing import Any

import pytest

from loopkit import EchoTool, call, drained, make_run
from trimtab.contracts.errors import AuthenticationError, ModelError
from trimtab.contracts.messages import Image, UserMessage
from trimtab.contracts.options import RetryPolicy
from trimtab.contracts.provider import Price
from trimtab.contracts.run import Prompt
from trimtab.loop.processors.images import ImageRemoval
from trimtab.loop.processors.retry import Fallback, Fallbacks, Retry
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider

PICTURE = {"type": "blob", "data": "aGk=", "mimeType": "image/png", "displayName": "a.png"}


def other(replies: Any, model: str = "other") -> Fallback:
    price = Price(input=1, output=1)
    return Fallback(provider=ScriptedProvider(Script.of(replies)), model=model, price=price)


async def test_a_wait_says_how_long_it_is_and_which_retry_it_leads_to() -> None:
    run = make_run(
        [{"error": 503}, "ok"], "go", processors=[Retry(RetryPolicy(retries=3, delay=0.01))]
    )
    session = await drained(run)
    (retry,) = session.of("assistant.turn_retry")
    assert (retry.retry, retry.max_retries) == (1, 3)
    assert 0 < retry.retry_in_seconds <= 0.01
    assert "Retry 1 of 3" in retry.reason


async def test_a_long_wait_is_counted_down_and_the_services_wish_is_kept() -> None:
    failure = {"error": {"status": 429, "headers": {"retry-after-ms": "350"}}}
    run = make_run(
        [failure, "ok"], "go", processors=[Retry(RetryPolicy(retries=3, delay=0.001), tick=0.1)]
    )
    loop = asyncio.get_running_loop()
    started = loop.time()
    session = await drained(run)
    assert loop.time() - started >= 0.34
    assert session.of("assistant.turn_retry")[0].retry_in_seconds == 0.35
    assert [tick.seconds_left for tick in session.of("trimtab.retry_wait")] == [0.25, 0.15, 0.05]


async def test_without_a_list_there_is_no_other_model() -> None:
    run = make_run(
        [{"error": 503, "repeat": "forever"}],
        "go",
        processors=[Retry(RetryPolicy(retries=1, delay=0.0))],
    )
    with pytest.raises(ModelError):
        await drained(run)


async def test_a_model_that_cannot_answer_is_followed_by_the_next_one_named() -> None:
    fallbacks = Fallbacks([other([{"error": 503, "repeat": "forever"}], "b"), other(["ok"], "c")])
    run = make_run(
        [{"error": 503, "repeat": "forever"}],
        "go",
        processors=[Retry(RetryPolicy(retries=1, delay=0.0), fallbacks=fallbacks)],
    )
    session = await drained(run)
    changes = [(c.previous_model, c.new_model, c.cause) for c in session.of("session.model_change")]
    assert changes == [("scripted", "b", "fallback"), ("b", "c", "fallback")]
    assert len(session.of("trimtab.model_call")) == 5, "each model has its tries"
    assert session.of("assistant.message")[0].model == "c"
    assert run.agent.model.price == Price(input=1, output=1)
    assert {w.warning_type for w in session.of("session.warning")} == {"model_fallback"}


@pytest.mark.parametrize("status", [401, 400, 413])
async def test_an_error_that_another_model_would_have_too_ends_the_run(status: int) -> None:
    fallbacks = Fallbacks([other(["ok"])])
    run = make_run(
        [{"error": status}],
        "go",
        processors=[Retry(RetryPolicy(retries=3, delay=0.0), fallbacks=fallbacks)],
    )
    with pytest.raises(ModelError) as caught:
        await drained(run)
    assert isinstance(caught.value, AuthenticationError) == (status == 401)
    session: Any = run.session
    assert len(session.of("trimtab.model_call")) == 1


@pytest.mark.proves("LOOP-20")
async def test_a_request_that_is_too_large_is_made_again_without_images() -> None:
    prompt = Prompt(text="look", id="1", attachments=(PICTURE, PICTURE))
    run = make_run([{"error": 413}, "ok"], prompt, processors=[ImageRemoval(), Retry()])
    session = await drained(run)
    provider: Any = run.agent.model.provider
    first, second = (request.messages[0] for request in provider.requests)
    assert sum(isinstance(part, Image) for part in first.parts) == 2
    assert isinstance(second, UserMessage)
    assert not any(isinstance(part, Image) for part in second.parts)
    assert "removed" in str(second.parts[-1])
    (removed,) = session.of("trimtab.images_removed")
    assert removed.count == 2


@pytest.mark.proves("LOOP-20")
async def test_a_request_that_is_too_large_without_images_ends_with_advice() -> None:
    prompt = Prompt(text="look", id="1", attachments=(PICTURE,))
    replies = [{"error": 413, "repeat": "forever"}]
    run = make_run(replies, prompt, processors=[ImageRemoval(), Retry()])
    with pytest.raises(ModelError, match="compact it or start a new session"):
        await drained(run)
    provider: Any = run.agent.model.provider
    assert len(provider.requests) == 2


async def test_an_answer_from_another_model_is_told_once() -> None:
    replies = [
        {"model": "cheap-model", "tools": [call(text="a")]},
        {"model": "cheap-model", "text": "ok"},
    ]
    session = await drained(make_run(replies, "go", tools=[EchoTool()]))
    (warning,) = session.of("session.warning")
    assert warning.warning_type == "model_substituted"
    assert "cheap-model" in warning.message


async def test_an_answer_from_the_model_under_its_dated_name_is_no_substitution() -> None:
    session = await drained(make_run([{"model": "scripted-2026-01-01", "text": "ok"}], "go"))
    assert not session.of("session.warning")


async def test_what_had_arrived_of_a_broken_answer_is_kept_in_the_log_and_not_shown_again() -> None:
    broken = {"text": "half an answer", "chunk": 4, "break": {"how": "close", "after": 2}}
    run = make_run([broken, "whole"], "go", processors=[Retry(RetryPolicy(retries=3, delay=0.0))])
    session = await drained(run)
    calls = [(call.status, call.partial_content) for call in session.of("trimtab.model_call")]
    assert calls == [("error", "half an "), ("success", None)]
    provider: Any = run.agent.model.provider
    assert len(provider.requests[1].messages) == 1, "the model does not see the half answer"


@pytest.mark.parametrize(("status", "asked"), [(429, ["rate_limit"]), (503, [])])
async def test_only_a_rate_limit_that_persists_asks_whether_to_switch_the_mode(
    status: int, asked: list[str]
) -> None:
    answers: list[str] = []

    async def switch(error: ModelError) -> bool:
        answers.append(error.category)
        return len(answers) == 1

    failing = {"error": status, "repeat": 2}
    retry = Retry(RetryPolicy(retries=1, delay=0.0), last_resort=switch)
    run = make_run([failing, "ok"], "go", processors=[retry])
    if not asked:
        with pytest.raises(ModelError):
            await drained(run)
    else:
        assert (await drained(run)).of("assistant.message")[-1].content == "ok"
    assert answers == asked


async def test_a_model_that_repeats_itself_is_followed_by_the_next_one() -> None:
    fallbacks, run = Fallbacks([other([], "b")]), make_run([])
    assert fallbacks.switch_when_stuck(run)
    assert run.agent.model.name == "b"
    (warning,) = run.session.of("session.warning")  # type: ignore[attr-defined]
    assert warning.message.startswith("scripted repeats itself; continuing with")
    assert not fallbacks.switch_when_stuck(run), "there is no other one"
    assert run.agent.model.name == "b"


async def test_nobody_is_billed_for_the_words_after_a_reply_that_was_cut() -> None:
    run, retry = make_run([]), Retry(RetryPolicy(retries=0))
    cut = ModelError("Cut.", code="output_limit")
    assert [await retry.on_request_error(run, cut, attempt) for attempt in range(3)] == [
        True,
        True,
        False,
    ]
    assert run.prompt.billable is False
    assert run.prompt.source == "system"
