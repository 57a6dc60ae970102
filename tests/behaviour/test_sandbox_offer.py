"""A person who is asked about many commands is told once that the sandbox would spare that."""

from pathlib import Path
from typing import Any

import pytest

from clikit import bash
from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.permissions.processor import MANY_QUESTIONS
from trimtab.testing.playing import Played, play

pytestmark = pytest.mark.needs("bubblewrap")


async def approve(request_id: str, request: Any) -> Answer:
    return Answer(kind="approve-once")


async def ask_about(count: int, home: Path, **options: Any) -> Played:
    """A session with questions about so many commands."""
    replies = [{"tools": [bash(f"echo {number} > made")]} for number in range(count)]
    options = {"permissions": PermissionOptions(), "ask": approve, **options}
    return await play([*replies, "done"], "go", home=str(home), **options)


def find_offers(played: Played) -> list[str]:
    told = [event.data for event in played.events if event.type == "session.info"]
    messages = [getattr(data, "message", "") for data in told]
    return [message for message in messages if "need no permission" in message]


async def test_the_sandbox_is_offered_after_many_questions_and_never_again(tmp_path: Path) -> None:
    (offer,) = find_offers(await ask_about(MANY_QUESTIONS + 2, tmp_path))
    assert offer.endswith('/settings sandbox {"enabled": true, "autoAllow": true}')
    assert not find_offers(await ask_about(MANY_QUESTIONS, tmp_path))


async def test_a_person_who_is_asked_little_is_offered_nothing(tmp_path: Path) -> None:
    assert not find_offers(await ask_about(MANY_QUESTIONS - 1, tmp_path))
    assert find_offers(await ask_about(MANY_QUESTIONS, tmp_path))


async def test_nothing_is_offered_inside_the_sandbox_or_where_nobody_answers(
    tmp_path: Path,
) -> None:
    assert not find_offers(await ask_about(MANY_QUESTIONS, tmp_path, sandbox=True))
    assert not find_offers(await ask_about(MANY_QUESTIONS, tmp_path, ask=None))


async def test_the_offered_command_lets_the_next_session_run_commands_unasked(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    async def note(request_id: str, request: Any) -> Answer:
        asked.append(request["kind"])
        return Answer(kind="approve-once")

    (tmp_path / "settings.json").write_text('{"sandbox": {"enabled": true, "autoAllow": true}}')
    await ask_about(MANY_QUESTIONS, tmp_path, ask=note)
    assert asked == []
