"""The workspace of a call: what its tools write and its commands do is recorded as of that call."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from properties.undo_cases import Party
from trimtab.contracts.workspace import Command, ShellError
from trimtab.undo.recorded_workspace import RecordedWorkspace
from trimtab.undo.recorder import Marker


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
async def party(tmp_path: Path, root: Path) -> AsyncIterator[Party]:
    party = Party(str(tmp_path), str(root))
    party.begin_turn()
    yield party
    party.close()
    await party.workspace.aclose()


def of_agent(party: Party) -> RecordedWorkspace:
    """The workspace of a call of a sub-agent."""
    return RecordedWorkspace(
        party.workspace, party.recorder, "call-7", agent="agent-1", confined=False, fenced=False
    )


def told(party: Party) -> list[tuple[str, str | None, str | None, list[str]]]:
    """What is recorded: the reason, the call, the agent and the names of the paths."""
    return [
        (
            entry.event.reason,
            entry.event.tool_call_id,
            entry.agent_id,
            [os.path.basename(change.os_path) for change in entry.changes],
        )
        for entry in party.history.recorded()
    ]


async def test_what_a_tool_writes_moves_and_removes_is_of_its_call(
    party: Party, root: Path
) -> None:
    files = of_agent(party)
    await files.write(str(root / "b.txt"), b"b\n", new=True)
    await files.move(str(root / "b.txt"), str(root / "c.txt"))
    await files.remove(str(root / "c.txt"))
    names = [["b.txt"], ["b.txt"], ["c.txt"], ["c.txt"]]
    assert told(party) == [("tool", "call-7", "agent-1", name) for name in names]
    assert {entry.event.detail for entry in party.history.recorded()} == {None}


async def test_a_new_file_never_replaces_one_that_is_there(party: Party, root: Path) -> None:
    with pytest.raises(FileExistsError):
        await party.files.write(str(root / "a.txt"), b"two\n", new=True)
    await party.files.write(str(root / "a.txt"), b"three\n")
    assert told(party) == [("tool", "call", None, ["a.txt"])]


class Editor:
    """An editor in which a person has changed files without saving them."""

    def __init__(self, unsaved: dict[str, str]) -> None:
        self.unsaved = unsaved

    async def read(self, path: str) -> str | None:
        return self.unsaved.get(path)

    async def write(self, path: str, text: str) -> bool:
        Path(path).write_text(text)
        self.unsaved.pop(path, None)
        return True


async def test_what_a_person_has_not_saved_is_saved_before_a_tool_changes_the_file(
    party: Party, root: Path
) -> None:
    paths = [str(root / name) for name in ("a.txt", "b.txt", "c.txt")]
    for path in paths:
        Path(path).write_text("saved\n")
    party.workspace.editor = Editor(dict.fromkeys(paths, "not saved\n"))
    await party.files.write(paths[0], b"by the tool\n")
    await party.files.remove(paths[1])
    await party.files.move(paths[2], str(root / "d.txt"))
    changes = [entry.changes[0] for entry in party.history.recorded()]
    before = {change.path: change.before for change in changes if change.path in paths}
    texts = [party.recorder.store.get(before[path].digest) for path in paths]
    assert texts == [b"not saved\n"] * 3


async def test_a_new_file_leaves_what_a_person_has_not_saved_alone(
    party: Party, root: Path
) -> None:
    path = str(root / "a.txt")
    party.workspace.editor = Editor({path: "not saved\n"})
    with pytest.raises(FileExistsError):
        await party.files.write(path, b"by the tool\n", new=True)
    assert (root / "a.txt").read_text() == "one\n"


async def test_a_command_is_recorded_with_the_beginning_of_its_text(
    party: Party, root: Path
) -> None:
    text = f"echo x > b.txt # {'x' * 2000}"
    state = await of_agent(party).shells.execute(Command(text=text), wait=50, limit=100)
    assert state.exit_code == 0
    assert told(party) == [("shell", "call-7", "agent-1", ["b.txt"])]
    assert party.history.recorded()[0].event.detail == text[:1000]
    assert Marker(party.folder).read() is None


@pytest.mark.parametrize("agent", ["", "agent-1"])
async def test_a_command_in_the_background_is_listed_with_its_agent(
    party: Party, agent: str
) -> None:
    shells = (of_agent(party) if agent else party.files).shells
    state = await shells.execute(Command(text="cat", background=True), wait=0.01, limit=100)
    (shell,) = shells.list()
    assert (shell.shell_id, shell.agent_id) == (state.shell_id, agent)


async def test_a_command_that_may_change_nothing_is_not_recorded(party: Party, root: Path) -> None:
    asked = []

    def may_change(access: object) -> bool:
        asked.append(access)
        return False

    party.recorder.may_change = may_change
    command = Command(text="echo x > b.txt")
    state = await party.files.shells.execute(command, wait=50, limit=100)
    assert state.exit_code == 0
    assert told(party) == []
    assert [(access.kind, access.target) for access in asked] == [("shell", "echo x > b.txt")]  # type: ignore[attr-defined]


async def test_a_command_that_cannot_start_is_no_longer_open(party: Party) -> None:
    with pytest.raises(ShellError, match="NUL character"):
        await party.files.shells.execute(Command(text="echo \0"), wait=50, limit=100)
    assert Marker(party.folder).read() is None


async def test_what_follows_an_input_is_of_the_call_that_gave_it(party: Party, root: Path) -> None:
    command = Command(text="read line; echo $line > b.txt; echo done", background=True)
    state = await party.files.shells.execute(command, wait=0.01, limit=100)
    shells = of_agent(party).shells
    await shells.write(state.shell_id, [b"hello\n"])
    assert Marker(party.folder).read() == ("call-7", f"input to {state.shell_id}")
    while (await shells.read(state.shell_id, wait=50, limit=100)).exit_code is None:
        pass
    assert Marker(party.folder).read() is None
    assert told(party)[-1] == ("shell", "call-7", "agent-1", ["b.txt"])


async def test_input_for_a_shell_that_is_not_there_leaves_no_call_open(party: Party) -> None:
    with pytest.raises(ShellError, match="nowhere"):
        await party.files.shells.write("nowhere", ["x"])
    assert Marker(party.folder).read() is None
