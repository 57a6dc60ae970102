"""Changes are recorded once, with whoever made them, whatever else happens at the time."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gitkit import git, make_repository
from loopkit import EchoTool, change_agent, make_run
from properties.undo_cases import Party
from trimtab.contracts.events.changes import SnapshotLimited
from trimtab.contracts.events.codec import decode
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.processor import PendingCall
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.tool import Access, ToolResult
from trimtab.contracts.workspace import Command
from trimtab.session.records import read_records
from trimtab.undo.blobs import MAX_SIZE
from trimtab.undo.changes import INLINE
from trimtab.undo.history import UndoRequest
from trimtab.undo.recorder import Marker, Reason, Recorder, is_of_git, missing_folders

FIRST = Reason("shell", "call-1", "make", "agent-1")
SECOND = Reason("shell", "call-2", "make test")
WRITE = Reason("tool", "call-3")


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


def told(party: Party) -> list[tuple[str, str | None, list[str]]]:
    """What is recorded: the reason, the call and the names of the paths."""
    return [
        (
            entry.event.reason,
            entry.event.tool_call_id,
            [os.path.basename(change.os_path) for change in entry.changes],
        )
        for entry in party.history.recorded()
    ]


def limits(party: Party) -> list[SnapshotLimited]:
    events = (decode(record.line).data for record in read_records(party.log))
    return [data for data in events if isinstance(data, SnapshotLimited)]


def another(party: Party) -> Recorder:
    """The recorder of a later process that works in the same session."""
    return Recorder(
        party.session, party.workspace, party.place, lambda _: True, [party.workspace.root]
    )


class TestMarker:
    @pytest.fixture
    def marker(self, tmp_path: Path) -> Marker:
        return Marker(str(tmp_path))

    def test_it_names_the_last_command_that_was_set(self, marker: Marker, tmp_path: Path) -> None:
        assert marker.read() is None
        marker.set("a long call id", "a long command")
        marker.set("call", None)
        assert marker.read() == ("call", None)
        assert stat.S_IMODE((tmp_path / "snapshot.open").stat().st_mode) == 0o600
        marker.clear()
        marker.clear()
        assert marker.read() is None

    def test_a_damaged_one_says_only_that_something_ran(
        self, marker: Marker, tmp_path: Path
    ) -> None:
        (tmp_path / "snapshot.open").write_bytes(b'["torn')
        assert marker.read() == (None, None)

    def test_without_a_folder_work_goes_on(self, tmp_path: Path) -> None:
        marker = Marker(str(tmp_path / "none"))
        marker.set("call", "make")
        assert marker.read() is None


async def test_a_command_is_recorded_with_its_call_its_text_and_its_agent(
    party: Party, root: Path
) -> None:
    await party.recorder.begin(FIRST)
    (root / "b.txt").write_text("by the command\n")
    await party.recorder.end(FIRST)
    (entry,) = party.history.recorded()
    assert (entry.event.reason, entry.event.tool_call_id) == ("shell", "call-1")
    assert (entry.event.detail, entry.event.count, entry.agent_id) == ("make", 1, "agent-1")


async def test_changes_before_a_command_are_of_the_person(party: Party, root: Path) -> None:
    await party.recorder.begin(FIRST)
    await party.recorder.end(FIRST)
    (root / "a.txt").write_text("by the person\n")
    await party.recorder.begin(SECOND)
    (root / "b.txt").write_text("by the command\n")
    await party.recorder.end(SECOND)
    assert told(party) == [("person", None, ["a.txt"]), ("shell", "call-2", ["b.txt"])]


async def test_a_change_while_calls_are_open_is_of_the_one_that_began_last(
    party: Party, root: Path
) -> None:
    for reason in (FIRST, SECOND):
        await party.recorder.begin(reason)
    (root / "b.txt").write_text("x")
    await party.recorder.begin(Reason("shell", "call-4", "ls"))
    await party.recorder.end(SECOND)
    assert told(party) == [("shell", "call-2", ["b.txt"])]


async def test_calls_of_two_agents_with_the_same_id_are_two_calls(party: Party, root: Path) -> None:
    for agent in ("one", "two"):
        await party.recorder.begin(Reason("shell", "call", agent, agent))
    await party.recorder.end(Reason("shell", "call", "two", "two"))
    (root / "a.txt").write_text("by one\n")
    await party.recorder.begin(SECOND)
    assert [entry.agent_id for entry in party.history.recorded()] == ["one"]


async def test_the_marker_stays_until_the_last_command_has_ended(party: Party) -> None:
    marker = Marker(party.folder)
    await party.recorder.begin(FIRST)
    assert marker.read() == ("call-1", "make")
    await party.recorder.begin(SECOND)
    assert marker.read() == ("call-2", "make test")
    await party.recorder.end(SECOND)
    assert marker.read() is not None
    await party.recorder.end(FIRST)
    assert marker.read() is None


async def test_a_command_that_is_cancelled_is_recorded_before_the_call_ends(
    party: Party, root: Path
) -> None:
    await party.recorder.begin(FIRST)
    (root / "b.txt").write_text("x")
    ending = asyncio.ensure_future(party.recorder.end(FIRST))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert told(party) == [("shell", "call-1", ["b.txt"])]
    assert Marker(party.folder).read() is None


@pytest.mark.needs("git")
async def test_git_objects_are_kept_during_a_command_and_released_at_the_end(
    party: Party, root: Path
) -> None:
    make_repository(root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    await party.recorder.begin(FIRST)
    assert os.listdir(party.place.git_objects)
    await party.recorder.end(FIRST)
    party.recorder.close()
    assert not os.path.exists(party.place.git_objects)


@pytest.mark.needs("git")
async def test_a_commit_of_the_session_itself_is_not_a_change_of_somebody(
    party: Party, root: Path
) -> None:
    make_repository(root)
    await party.recorder.take_over_commit()
    assert not os.path.exists(party.place.blobs)
    await party.recorder.begin(FIRST)
    await party.recorder.end(FIRST)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    (root / "a.txt").write_text("by the person\n")
    await party.recorder.take_over_commit()
    assert told(party) == [("person", None, ["a.txt"])]
    await party.recorder.begin(SECOND)
    assert len(told(party)) == 1


@pytest.mark.parametrize("after", ["before the first scan", "after the first scan"])
async def test_a_folder_that_is_added_is_scanned_from_then_on(
    party: Party, tmp_path: Path, after: str
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    if after == "after the first scan":
        await party.recorder.begin(FIRST)
        await party.recorder.end(FIRST)
    party.recorder.track([str(more)])
    await party.recorder.begin(SECOND)
    (more / "new.txt").write_text("x")
    await party.recorder.end(SECOND)
    assert told(party) == [("shell", "call-2", ["new.txt"])]


def pending(kind: str, *, mutates: bool) -> PendingCall:
    class Tool(EchoTool):
        def access(self, args: object, ctx: object) -> list[Access]:
            return [Access(kind="read"), Access(kind=kind, mutates=mutates)]

    call = ToolCall(id="call-9", name="echo", arguments="{}")
    return PendingCall(call=call, tool=Tool(), args={}, _cached_access=[])


@pytest.mark.parametrize(
    ("kind", "mutates", "scanned"),
    [
        ("custom-tool", True, True),
        ("mcp", True, True),
        ("mcp", False, False),
        ("custom-tool", False, False),
        ("write", True, False),
    ],
)
@pytest.mark.parametrize("agent", ["", "agent-1"])
async def test_a_tool_of_unknown_effect_is_recorded_like_a_command(
    party: Party, root: Path, kind: str, mutates: bool, scanned: bool, agent: str
) -> None:
    run = make_run([])
    change_agent(run, id=agent)
    call = pending(kind, mutates=mutates)
    assert await party.recorder.before_tool(run, call) is call
    (root / "b.txt").write_text("by the tool\n")
    result = ToolResult(text="done")
    assert await party.recorder.after_tool(run, call, result) is result
    assert told(party) == ([("custom-tool", "call-9", ["b.txt"])] if scanned else [])
    for entry in party.history.recorded():
        assert (entry.event.detail, entry.agent_id) == ("echo", agent or None)


@pytest.mark.parametrize(("agent", "reason"), [("", "person"), ("agent-1", "shell")])
async def test_a_prompt_of_the_main_agent_ends_calls_that_were_interrupted(
    party: Party, root: Path, agent: str, reason: str
) -> None:
    await party.recorder.begin(FIRST)
    run = make_run([])
    change_agent(run, id=agent)
    prompt = Prompt(text="go on")
    assert await party.recorder.on_prompt(run, prompt) is prompt
    (root / "a.txt").write_text("later\n")
    await party.recorder.begin(SECOND)
    assert [entry[0] for entry in told(party)] == [reason]


async def test_a_write_is_recorded_with_the_folders_it_makes(party: Party, root: Path) -> None:
    await party.files.write(str(root / "new" / "deep" / "b.txt"), b"x\n")
    (entry,) = party.history.recorded()
    assert entry.event.reason == "tool"
    kinds = [(os.path.relpath(change.path, root), change.after.kind) for change in entry.changes]
    assert kinds == [("new", "directory"), ("new/deep", "directory"), ("new/deep/b.txt", "file")]
    assert all(change.before.kind == "absent" for change in entry.changes)
    assert entry.event.count == 3


async def test_a_write_that_changes_nothing_is_not_recorded(party: Party, root: Path) -> None:
    await party.files.write(str(root / "a.txt"), b"one\n")
    assert told(party) == []


@pytest.mark.parametrize("known_by", ["a write", "a scan"])
async def test_an_edit_of_the_person_before_a_write_is_recorded_as_theirs(
    party: Party, root: Path, known_by: str
) -> None:
    path = str(root / "a.txt")
    if known_by == "a write":
        await party.files.write(path, b"two\n")
    else:
        await party.recorder.begin(FIRST)
        await party.recorder.end(FIRST)
    before = len(told(party))
    (root / "a.txt").write_text("by the person\n")
    await party.files.write(path, b"three\n")
    assert [entry[0] for entry in told(party)][before:] == ["person", "tool"]
    await party.recorder.begin(SECOND)
    assert len(told(party)) == before + 2


async def test_a_change_by_an_open_command_before_a_write_is_of_the_command(
    party: Party, root: Path
) -> None:
    await party.recorder.begin(FIRST)
    (root / "a.txt").write_text("by the command\n")
    await party.files.write(str(root / "a.txt"), b"by the tool\n")
    await party.recorder.end(FIRST)
    assert told(party) == [("shell", "call-1", ["a.txt"]), ("tool", "call", ["a.txt"])]


async def test_a_write_that_fails_half_way_is_recorded(party: Party, root: Path) -> None:
    async def write_half() -> None:
        async with party.recorder.writing(str(root / "a.txt"), reason=WRITE):
            (root / "a.txt").write_text("half\n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await write_half()
    assert told(party) == [("tool", "call-3", ["a.txt"])]


async def test_a_move_records_both_paths(party: Party, root: Path) -> None:
    await party.files.move(str(root / "a.txt"), str(root / "b.txt"))
    assert told(party) == [("tool", "call", ["a.txt"]), ("tool", "call", ["b.txt"])]


async def test_a_write_through_a_link_is_of_the_file_it_leads_to(party: Party, root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    async with party.recorder.writing(str(root / "link"), reason=WRITE):
        (root / "link").write_text("two\n")
    assert told(party) == [("tool", "call-3", ["a.txt"])]


@pytest.mark.parametrize("scanned", [True, False])
async def test_what_an_undo_did_is_not_found_again(party: Party, root: Path, scanned: bool) -> None:
    if scanned:
        await party.recorder.begin(FIRST)
        await party.recorder.end(FIRST)
    await party.files.write(str(root / "a.txt"), b"two\n")
    party.history.apply(party.history.plan_undo(UndoRequest()))
    await party.recorder.begin(SECOND)
    await party.recorder.end(SECOND)
    await party.files.write(str(root / "a.txt"), b"three\n")
    assert [entry[0] for entry in told(party)] == ["tool", "undo", "tool"]


async def test_what_an_undo_did_is_known_to_a_later_process(party: Party, root: Path) -> None:
    await party.recorder.begin(FIRST)
    await party.recorder.end(FIRST)
    await party.files.write(str(root / "a.txt"), b"two\n")
    party.history.apply(party.history.plan_undo(UndoRequest()))
    later = another(party)
    await later.begin(SECOND)
    later.close()
    assert [entry[0] for entry in told(party)] == ["tool", "undo"]


async def test_a_file_is_known_as_a_command_left_it_when_a_tool_writes_it_again(
    party: Party, root: Path
) -> None:
    await party.files.write(str(root / "a.txt"), b"by a tool\n")
    await party.recorder.begin(FIRST)
    (root / "a.txt").write_text("by a command\n")
    await party.recorder.end(FIRST)
    await party.files.write(str(root / "a.txt"), b"by a tool again\n")
    assert [entry[0] for entry in told(party)] == ["tool", "shell", "tool"]


async def test_changes_around_a_kill_are_of_the_command_that_ran(party: Party, root: Path) -> None:
    await party.recorder.begin(FIRST)
    (root / "b.txt").write_text("by the command\n")
    later = another(party)
    await later.begin(SECOND)
    later.close()
    (entry,) = party.history.recorded()
    assert (entry.event.reason, entry.event.tool_call_id) == ("interrupted", "call-1")
    assert (entry.event.detail, entry.agent_id) == ("make", None)


async def test_changes_between_two_processes_are_of_the_person(party: Party, root: Path) -> None:
    await party.recorder.begin(FIRST)
    await party.recorder.end(FIRST)
    (root / "b.txt").write_text("by the person\n")
    later = another(party)
    await later.begin(SECOND)
    later.close()
    assert told(party) == [("person", None, ["b.txt"])]


async def test_a_marker_without_a_snapshot_means_nothing(party: Party, root: Path) -> None:
    Marker(party.folder).set("call-0", "rm")
    await party.recorder.begin(FIRST)
    (root / "b.txt").write_text("by the command\n")
    await party.recorder.end(FIRST)
    assert told(party) == [("shell", "call-1", ["b.txt"])]


async def test_what_is_not_covered_is_told_once_and_again_when_the_reason_changes(
    party: Party, root: Path
) -> None:
    def make_large(name: str) -> None:
        with open(root / name, "wb") as file:
            file.truncate(40 * 1024 * 1024)

    await party.recorder.begin(FIRST)
    assert limits(party) == []
    make_large("large")
    await party.recorder.end(FIRST)
    await party.recorder.begin(FIRST)
    (limited,) = limits(party)
    assert (limited.root, limited.files, limited.uncovered) == (str(root), 2, 1)
    assert limited.reason == "too large or too many to be kept: 1 file"
    make_large("larger")
    await party.recorder.end(FIRST)
    assert [told.uncovered for told in limits(party)] == [1, 2]


async def test_on_a_full_disk_a_long_list_of_changes_is_in_the_log(
    party: Party, root: Path
) -> None:
    await party.recorder.begin(FIRST)
    for number in range(INLINE + 1):
        (root / f"{number}.txt").write_text("x")
    os.rename(party.place.blobs, f"{party.place.blobs}.away")
    await party.recorder.end(FIRST)
    os.rename(f"{party.place.blobs}.away", party.place.blobs)
    (entry,) = party.history.recorded()
    assert entry.event.list_digest is None
    assert len(entry.event.changes) == entry.event.count == INLINE + 1


@pytest.mark.parametrize("changed_by", ["a write", "an undo", "nothing", "a scan"])
async def test_the_file_index_is_written_at_the_end_if_something_was_recorded(
    tmp_path: Path, root: Path, changed_by: str
) -> None:
    party = Party(str(tmp_path), str(root))
    party.begin_turn()
    if changed_by in ("a write", "an undo"):
        await party.files.write(str(root / "a.txt"), b"two\n")
    if changed_by == "an undo":
        later = another(party)
        party.recorder, party.history._record = later, later.record
        later.store.put(b"")
        party.history.apply(party.history.plan_undo(UndoRequest()))
    if changed_by == "a scan":
        await party.recorder.begin(FIRST)
        await party.recorder.end(FIRST)
    party.close()
    await party.workspace.aclose()
    index = Path(party.folder, "rewind-file-snapshots", "index.json")
    assert index.exists() is (changed_by in ("a write", "an undo"))


async def test_a_session_without_changes_leaves_no_blobs(tmp_path: Path, root: Path) -> None:
    party = Party(str(tmp_path), str(root))
    party.close()
    await party.workspace.aclose()
    assert not os.path.exists(party.place.blobs)


@pytest.mark.parametrize(
    ("path", "of_git"),
    [
        ("/a/.git/HEAD", True),
        ("/a/.git", True),
        ("/a/.github/x", False),
        ("/a/git/x", False),
        ("/a/x.git/y", False),
    ],
)
def test_only_what_is_in_a_git_folder_is_of_git(path: str, of_git: bool) -> None:
    assert is_of_git(path) is of_git


def test_missing_folders_are_listed_from_the_top(tmp_path: Path) -> None:
    top = str(tmp_path)
    assert missing_folders(f"{top}/a.txt") == []
    folders = [f"{top}/b", f"{top}/b/c", f"{top}/b/c/d"]
    assert missing_folders(f"{top}/b/c/d/a.txt") == folders


class Background:
    """A command of the party that writes `late.txt` once there is `go`, and ends with `stop`."""

    def __init__(self, party: Party, root: Path) -> None:
        self._party, self._root = party, root
        self._changed = asyncio.Event()
        party.session.subscribe(lambda *_: self._changed.set())

    async def start(self, number: int = 1) -> None:
        text = (
            f"until [ -e go{number} ]; do sleep 0.02; done; echo x > late{number}.txt; "
            f"until [ -e stop{number} ]; do sleep 0.02; done"
        )
        command = Command(text=text, background=True)
        state = await self._party.files.shells.execute(command, wait=0.01, limit=100)
        assert state.exit_code is None

    async def let_it_write(self, number: int = 1) -> None:
        """Wait until what it writes is recorded."""
        (self._root / f"go{number}").touch()
        async with asyncio.timeout(50):
            while not any(f"late{number}.txt" in paths for _, __, paths in told(self._party)):
                self._changed.clear()
                await self._changed.wait()

    def stop(self, number: int = 1) -> None:
        (self._root / f"stop{number}").touch()


async def begin_run(party: Party) -> Run:
    party.recorder.scan_interval = 0.01
    run = make_run([])
    await party.recorder.on_prompt(run, Prompt(text="go"))
    return run


async def test_changes_of_a_background_command_are_found_while_nothing_else_happens(
    party: Party, root: Path
) -> None:
    run, background = await begin_run(party), Background(party, root)
    await background.start()
    (watching,) = run.tasks
    await background.let_it_write()
    reasons = {entry.event.reason for entry in party.history.recorded()}
    assert reasons == {"background"}
    event = party.history.recorded()[-1].event
    assert event.tool_call_id == "call"
    assert (event.detail or "").startswith("until [ -e go1 ]")
    background.stop()
    async with asyncio.timeout(50):
        await watching
    assert not run.tasks
    before = len(told(party))
    (root / "mine.txt").write_text("x")
    await party.recorder.begin(FIRST)
    assert [entry[0] for entry in told(party)][before:] == ["person"]


async def test_one_watch_serves_all_background_commands_and_another_follows_later(
    party: Party, root: Path
) -> None:
    run, background = await begin_run(party), Background(party, root)
    for number in (1, 2):
        await background.start(number)
    (watching,) = run.tasks
    background.stop(1)
    (root / "go1").touch()
    await background.let_it_write(2)
    assert not watching.done()
    background.stop(2)
    async with asyncio.timeout(50):
        await watching
    await background.start(3)
    (again,) = run.tasks
    (root / "go3").touch()
    background.stop(3)
    async with asyncio.timeout(50):
        await again


async def test_without_a_run_background_commands_are_not_watched(party: Party, root: Path) -> None:
    background = Background(party, root)
    await background.start()
    assert "Recorder._watch" not in repr(asyncio.all_tasks())
    (root / "go1").touch()
    background.stop()


async def test_a_write_beside_a_background_command_leaves_changes_to_that_command(
    party: Party, root: Path
) -> None:
    background = Background(party, root)
    await background.start()
    (root / "a.txt").write_text("by nobody knows whom\n")
    await party.recorder.begin(SECOND)
    assert [entry[:2] for entry in told(party)] == [("background", "call")]
    (root / "go1").touch()
    background.stop()


async def test_what_can_be_restored_is_found_before_a_command_destroys_it(
    party: Party, root: Path
) -> None:
    (root / "old").mkdir()
    (root / "old/b.txt").write_text("two\n")
    recorder = party.recorder
    assert await recorder.can_restore([str(root / "old")])
    assert await recorder.can_restore([])
    assert not await recorder.can_restore([str(root / "old"), "/nowhere/else"])
    with (root / "huge").open("wb") as file:
        file.truncate(MAX_SIZE + 1)
    assert await recorder.can_restore([str(root / "old")])
    assert not await recorder.can_restore([str(root / "huge")])
    assert not await recorder.can_restore([]), "not everything is kept any more"
