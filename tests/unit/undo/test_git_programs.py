"""Programs that git starts from now on because a command changed its files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitkit import git, make_repository
from properties.undo_cases import Party
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.session import SessionWarning
from trimtab.session.records import read_records
from trimtab.undo.recorder import Reason

pytestmark = pytest.mark.needs("git")
MAKE = Reason("shell", "call-1", "make setup")
TOOL = Reason("tool", "call-2")


@pytest.fixture
async def party(tmp_path: Path) -> AsyncIterator[Party]:
    root = tmp_path / "project"
    root.mkdir()
    make_repository(root)
    (root / "a.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    git(root, "config", "core.editor", "vi")
    party = Party(str(tmp_path), str(root))
    party.begin_turn()
    yield party
    party.close()
    await party.workspace.aclose()


async def find_warnings(party: Party, change: str, reason: Reason = MAKE) -> list[str]:
    """Return the warnings about a change that a shell makes in the workspace."""
    root = Path(party.workspace.root)
    await party.recorder.begin(reason)
    name, _, value = change.partition(" = ")
    if value:
        git(root, "config", name, value)
    else:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/sh\n")
    await party.recorder.end(reason)
    said = (decode(record.line).data for record in read_records(party.log))
    warnings = [data.message for data in said if isinstance(data, SessionWarning)]
    return [message.replace(f"{root}/", "") for message in warnings]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (".git/hooks/post-checkout", ".git/hooks/post-checkout"),
        (".git/modules/x/hooks/pre-push", ".git/modules/x/hooks/pre-push"),
        ("core.hooksPath = tools", "core.hookspath in .git/config"),
        ("core.fsmonitor = ./watch", "core.fsmonitor in .git/config"),
        ("diff.x.textconv = ./show", "diff.textconv in .git/config"),
        ("alias.st = !make", "alias.st in .git/config"),
        ("include.path = ../other", "include.path in .git/config"),
    ],
)
async def test_a_person_is_told_what_git_starts_from_now_on(
    party: Party, change: str, found: str
) -> None:
    (message,) = await find_warnings(party, change)
    assert message == (
        f"git starts a program from now on that a command put here: {found}. Look at it; "
        "`trimtab undo` takes it back."
    )


@pytest.mark.parametrize(
    "change",
    [
        "a.txt",
        "hooks/pre-push",
        ".git/hooks/pre-push.sample",
        ".git/description",
        "user.name = Somebody",
        "alias.st = status",
        "core.editor = vi",
        "filter.lfs.clean = git-lfs clean -- %f",
        "branch.main.remote = origin",
    ],
)
async def test_nothing_is_said_of_what_starts_nothing_new(party: Party, change: str) -> None:
    assert await find_warnings(party, change) == []


async def test_nothing_is_said_of_what_a_person_was_asked_about(party: Party) -> None:
    assert await find_warnings(party, ".git/hooks/pre-push", TOOL) == []
