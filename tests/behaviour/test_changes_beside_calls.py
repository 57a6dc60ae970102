"""What a call changes while it is open is its doing, also if another call is the one to notice."""

import json
from pathlib import Path
from typing import Any

import pytest

from clikit import Cli, bash, serving
from hookkit import stored, write_hooks
from undokit import tree

SLOW = bash("echo by the first > a.txt; until [ -e done.txt ]; do sleep 0.02; done")
"""Changes a file at once, and is open until the other call has done its part."""
GATE = (
    'input=$(cat); case "$input" in *SECOND*) '
    'until [ "$(cat a.txt)" = "by the first" ]; do sleep 0.02; done;; esac'
)
"""A hook that lets the second call begin when the first has changed the file."""
SECOND: dict[str, dict[str, Any]] = {
    "a command": bash("touch done.txt # SECOND"),
    "an edit of the same file": {
        "name": "edit",
        "arguments": {"path": "a.txt", "old_str": "by the first", "new_str": "by the SECOND"},
    },
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (cli.cwd / "a.txt").write_text("before\n")
    write_hooks(cli, {"preToolUse": [{"type": "command", "bash": GATE}]}, "user")
    return cli


def changes_of(cli: Cli, name: str) -> list[tuple[str, str | None]]:
    """Who changed a file, in order: the reason and the call."""
    return [
        (told["reason"], told.get("toolCallId"))
        for told in stored(cli, "trimtab.workspace_changed")
        for change in told["changes"]
        if change["path"].endswith(name)
    ]


async def work_side_by_side(cli: Cli, second: dict[str, Any]) -> None:
    first = {**SLOW, "id": "first"}
    other = {**second, "id": "second"}
    if other["name"] == "edit":  # and a third that ends the first when the edit is made
        edited = '"by the SEC""OND"'  # in two pieces, so that the hook lets it begin at once
        gate = f'until [ "$(cat a.txt)" = {edited} ]; do sleep 0.02; done; touch done.txt'
        calls = [first, other, {**bash(gate), "id": "third"}]
    else:
        calls = [first, other]
    async with serving([{"tools": calls}, "Done."]) as server:
        outcome = await cli.use(server).ask("go")
    assert outcome.code == 0, outcome.notes


@pytest.mark.parametrize("name", SECOND)
async def test_a_change_during_an_open_call_is_of_that_call_and_not_of_the_person(
    cli: Cli, name: str
) -> None:
    await work_side_by_side(cli, SECOND[name])
    changes = changes_of(cli, "a.txt")
    assert "person" not in [reason for reason, _ in changes]
    assert changes[0][0] == "shell"
    assert changes[0][1] in ("first", "third")
    if name == "a command":
        assert changes == [("shell", "first")]


@pytest.mark.parametrize("name", SECOND)
async def test_undo_takes_back_what_an_open_call_changed(cli: Cli, name: str) -> None:
    before = tree(cli.cwd)
    await work_side_by_side(cli, SECOND[name])
    assert tree(cli.cwd) != before
    undone = await cli.run("undo")
    assert undone.code == 0, undone.notes
    assert tree(cli.cwd) == before


async def test_what_a_person_changes_between_two_calls_stays_theirs(cli: Cli) -> None:
    (cli.home / "hooks/hooks.json").unlink()
    async with serving(
        [
            {"tools": [bash("echo one > b.txt")]},
            {"text": "first done"},
            {"tools": [bash("echo two > c.txt")]},
            {"text": "second done"},
        ]
    ) as server:
        outcome = await cli.use(server).ask("go")
        (cli.cwd / "a.txt").write_text("by the person\n")
        await cli.ask("go on", f"--resume={outcome.result['sessionId']}")
    assert changes_of(cli, "a.txt") == [("person", None)]
    assert json.loads((await cli.run("undo", "--json")).text)
    assert (cli.cwd / "a.txt").read_text() == "by the person\n"
