"""Slash commands among the prompts of a session."""

from typing import Any

import pytest

from loopkit import MemoryInbox, drained, make_run
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


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        (Prompt(text="/good", source="hook"), False),
        (Prompt(text="/good", source="autopilot"), False),
        (Prompt(text="good"), False),
        (Prompt(text="/odd"), True),
        (Prompt(text="!ls"), True),
    ],
)
async def test_only_what_a_person_types_with_a_mark_may_be_a_command(
    prompt: Prompt, asked: bool
) -> None:
    seen: list[str] = []

    async def note(text: str) -> str | None:
        seen.append(text)
        return None

    assert await SlashCommands(note).on_prompt(make_run([]), prompt) is prompt
    assert seen == ([prompt.text] if asked else [])


async def test_a_command_of_a_person_that_fails_is_not_left_in_the_queue() -> None:
    consumed: list[Prompt] = []

    class Noting(MemoryInbox):
        def consume(self, prompt: Prompt) -> None:
            consumed.append(prompt)

    run, prompt = make_run([]), Prompt(text="/bad")
    run.inbox = Noting(())
    with pytest.raises(UsageError, match="type it right"):
        await SlashCommands(answer).on_prompt(run, prompt)
    assert consumed == [prompt]
