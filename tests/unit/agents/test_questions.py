"""Questions that wait for an answer, from wherever it comes."""

import asyncio
from typing import Any

import pytest

from trimtab.agents.questions import Questions
from trimtab.contracts.events.question import UserInputRequested

REQUEST = UserInputRequested(request_id="1", question="Which?")


async def test_an_answer_may_come_while_the_question_is_announced() -> None:
    questions = Questions()
    assert await questions.wait("1", lambda: questions.answer("1", "red")) == "red"
    assert not questions.answer("1", "blue")


async def test_a_question_that_nobody_awaits_is_not_open() -> None:
    questions = Questions()
    waiting = asyncio.create_task(questions.wait("1"))
    await asyncio.sleep(0)
    assert questions.is_open("1")
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert not questions.is_open("1")
    assert not questions.answer("1", "red")


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_the_first_of_two_answers_counts(elsewhere: bool) -> None:
    questions, asked, cancelled = Questions(), asyncio.Event(), []

    async def ask() -> Any:
        asked.set()
        try:
            await asyncio.sleep(60 if elsewhere else 0)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "here"

    answer = asyncio.create_task(questions.first_answer(REQUEST, ask))
    await asked.wait()
    assert questions.requests == {"1": REQUEST}
    if elsewhere:
        assert questions.answer("1", "there")
    assert await answer == ("there" if elsewhere else "here")
    assert cancelled == [True] * elsewhere
    assert questions.requests == {}
    assert not questions.is_open("1")
