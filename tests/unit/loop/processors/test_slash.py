"""Slash commands among the prompts of a session."""

from typing import Any

import pytest

from loopkit import drained, make_run
from trimtab.contracts.errors import UsageError
from trimtab.contracts.run import COMMAND, Prompt
from trimtab.loop.processors.slash import SlashCommands


async def answer(text: str) -> str | None:
    if text == "/bad":
        raise UsageError("That is wrong; type it right.")
    return "fine" if text == "/good" else None


def queue(text: str) -> Prompt:
    return Prompt(text=text, source=COMMAND)


async def run_queued(text: str, offer: Any) -> list[str]:
    run = make_run(["done"], queue(text), processors=[SlashCommands(answer, offer)])
    return [info.message for info in (await drained(run)).of("session.info")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/good", "fine"),
        ("/bad", "That is wrong; type it right."),
        ("/odd", "Unknown command: /odd; see /help."),
    ],
)
async def test_a_queued_command_is_answered_and_never_sent_to_the_model(
    text: str, said: str
) -> None:
    assert await run_queued(text, None) == [said]


@pytest.mark.parametrize("claims", [True, False])
async def test_a_client_that_claims_a_queued_command_answers_it_alone(claims: bool) -> None:
    offered: list[str] = []

    async def offer(text: str) -> bool:
        offered.append(text)
        return claims

    assert await run_queued("/good", offer) == ([] if claims else ["fine"])
    assert offered == ["/good"]


async def test_a_command_that_stands_for_a_prompt_is_sent_as_that_prompt() -> None:
    async def expand(text: str) -> str | None:
        return "Review it." if text == "/review" else None

    commands = SlashCommands(answer, None, expand)
    run = make_run(["done", "done"], "/review", "/good", "hello", processors=[commands])
    session = await drained(run)
    assert [message.content for message in session.of("user.message")] == ["/review", "hello"]
    assert [info.message for info in session.of("session.info")] == ["fine"]
