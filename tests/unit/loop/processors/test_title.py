"""Titles of sessions, written beside the first answer."""

import asyncio
from typing import Any

import pytest

from loopkit import MemorySession, change_agent, make_run
from trimtab.contracts.messages import Text
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.ledger import Allowance, Ledger, Spending
from trimtab.loop.processors.title import MAX_LENGTH, Titles
from trimtab.loop.side_calls import Writer
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider


async def written(reply: Any, *prompts: Prompt) -> tuple[list[str], Run, ScriptedProvider]:
    """The saved titles, the run, and the model that wrote them."""
    provider = ScriptedProvider(Script.of([reply, reply]))

    async def find_writer() -> Writer | None:
        return Writer(provider=provider, model="small")

    saved: list[str] = []
    titles, run = Titles("Name it.", find_writer, saved.append), make_run([])
    for prompt in prompts:
        assert await titles.on_prompt(run, prompt) is prompt
        await asyncio.gather(*run.tasks)
    return saved, run, provider


def session_of(run: Run) -> MemorySession:
    assert isinstance(run.session, MemorySession)
    return run.session


async def test_the_first_prompt_of_a_person_is_given_a_title_once() -> None:
    hook, first, second = (
        Prompt(text="from a hook", source="hook"),
        Prompt(text="fix the parser"),
        Prompt(text="and the lexer"),
    )
    saved, run, provider = await written('"Fix the\n parser."', hook, first, second)
    assert saved == ["Fix the parser"]
    assert [data.title for data in session_of(run).of("session.title_changed")] == saved
    (request,) = provider.requests
    assert request.model == "small"
    (part,) = request.messages[0].parts  # type: ignore[union-attr]
    assert part == Text(text="Name it.\n\n<prompt>\nfix the parser\n</prompt>")
    (call,) = session_of(run).of("trimtab.model_call")
    assert (call.purpose, call.status) == ("title", "success")


@pytest.mark.parametrize(("reply", "expected"), [("'.'", []), ("x" * 300, ["x" * MAX_LENGTH])])
async def test_an_empty_title_is_not_used_and_a_long_one_is_cut(
    reply: str, expected: list[str]
) -> None:
    saved, run, _ = await written(reply, Prompt(text="go"))
    assert saved == expected
    assert len(session_of(run).of("session.title_changed")) == len(expected)


async def test_a_model_that_fails_is_told_of_and_the_session_goes_on() -> None:
    saved, run, _ = await written({"error": {"status": 400, "message": "no"}}, Prompt(text="go"))
    assert saved == []
    (warning,) = session_of(run).of("session.warning")
    assert warning.warning_type == "title"
    assert warning.message.startswith("No title was written: ")
    (call,) = session_of(run).of("trimtab.model_call")
    assert call.status == "error"


async def test_a_title_is_asked_for_in_one_piece_and_reserves_what_it_sends() -> None:
    asked: list[tuple[str, int, int]] = []

    class Noting(Ledger):
        def reserve_call(self, purpose: str, prompt: int, output: int, price: Any) -> bool:
            asked.append((purpose, prompt, output))
            return True

    provider, run = ScriptedProvider(Script.of(["A title"])), make_run([])
    change_agent(run, budget=Noting(Allowance(tokens=1), Spending))

    async def find_writer() -> Writer | None:
        return Writer(provider=provider, model="small")

    titles = Titles("Name it.", find_writer, lambda _: None)
    await titles.on_prompt(run, Prompt(text="x" * 3_000))
    await asyncio.gather(*run.tasks)
    (request,) = provider.requests
    assert (request.stream, request.tools) == (False, ())
    length = len("Name it.\n\n<prompt>\n\n</prompt>") + 2_000
    assert asked == [("title", length // 4, 32)]


async def test_without_a_model_for_titles_none_is_written() -> None:
    async def find_nothing() -> Writer | None:
        return None

    saved: list[str] = []
    run = make_run([])
    await Titles("Name it.", find_nothing, saved.append).on_prompt(run, Prompt(text="go"))
    await asyncio.gather(*run.tasks)
    assert (saved, session_of(run).events) == ([], [])
