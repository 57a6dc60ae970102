"""The list of changed files that other tools read, in Copilot's layout."""

import base64
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.contracts.events.changes import WorkspaceChanged
from trimtab.undo.file_index import COPIED, COUNTED, changes_by_turn, count_change, write_index
from trimtab.undo.rewind import list_points
from undokit import WorkingSession


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkingSession]:
    work = WorkingSession(tmp_path)
    yield work
    work.session.close()


def written(work: WorkingSession) -> list[dict[str, Any]]:
    """Write the index and return its messages."""
    write_index(work.folder, work.store)
    index = Path(work.folder.path, "rewind-file-snapshots", "index.json")
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    document = json.loads(index.read_bytes())
    assert document["schemaVersion"] == 1
    messages: list[dict[str, Any]] = document["messages"]
    return messages


def backups(work: WorkingSession) -> Path:
    return Path(work.folder.path, "rewind-file-snapshots", "backups")


def image(text: str, mode: int = 0o644) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"kind": "file", "hash": digest, "mode": mode, "size": len(text)}


def test_each_turn_lists_its_files_with_their_images_and_lines(work: WorkingSession) -> None:
    (work.root / "a.txt").write_text("one\ntwo\n")
    work.begin_turn()
    work.write("a.txt", "one\n2\n3\n")
    work.begin_turn()
    work.write("b.txt", "new\n", "shell")
    work.remove("a.txt", "custom-tool")
    messages = written(work)
    points = list_points(work.folder.events)
    assert [message["eventId"] for message in messages] == [point.event_id for point in points]
    assert [message["timestamp"] for message in messages] == [point.timestamp for point in points]
    assert messages[0]["files"] == [
        {
            "path": work.path("a.txt"),
            "pathBytes": base64.b64encode(os.fsencode(work.path("a.txt"))).decode(),
            "preImage": image("one\ntwo\n"),
            "postImage": image("one\n2\n3\n"),
            "linesAdded": 2,
            "linesRemoved": 1,
        }
    ]
    made, gone = messages[1]["files"]
    assert (made["preImage"], made["postImage"]) == (None, image("new\n"))
    assert (gone["preImage"], gone["postImage"]) == (image("one\n2\n3\n"), None)
    kept = {path.name: path.read_text() for path in backups(work).iterdir()}
    assert kept == {image(text)["hash"]: text for text in ("one\ntwo\n", "one\n2\n3\n")}
    assert stat.S_IMODE(backups(work).stat().st_mode) == 0o700


def test_a_change_before_the_first_prompt_has_no_event(work: WorkingSession) -> None:
    work.write("a.txt", "one\n")
    work.begin_turn()
    work.write("b.txt", "b\n")
    first, second = written(work)
    assert (first["eventId"], first["timestamp"]) == (None, None)
    assert second["eventId"] is not None


def test_the_index_can_be_written_again(work: WorkingSession) -> None:
    work.begin_turn()
    (work.root / "a.txt").write_text("one\n")
    work.write("a.txt", "two\n")
    before = written(work)
    (backup,) = backups(work).iterdir()
    inode = backup.stat().st_ino
    assert written(work) == before
    assert backup.stat().st_ino == inode


def test_a_lost_copy_is_listed_without_its_backup(work: WorkingSession) -> None:
    work.begin_turn()
    (work.root / "a.txt").write_text("one\n")
    work.write("a.txt", "two\n")
    os.unlink(work.store.path(image("one\n")["hash"]))
    ((file,),) = [message["files"] for message in written(work)]
    assert (file["preImage"], file["linesAdded"]) == (image("one\n"), 0)
    assert list(backups(work).iterdir()) == []


def test_a_file_that_was_not_kept_has_no_hash(work: WorkingSession) -> None:
    work.begin_turn()
    state = FileState("file", 0o644, "", 5)
    change = Change.at("/large", ABSENT, state)
    work.emit(WorkspaceChanged(reason="shell", count=0), [change])
    ((file,),) = [message["files"] for message in written(work)]
    assert file["postImage"] == {"kind": "file", "hash": None, "mode": 0o644, "size": 5}


def test_no_more_than_some_hundred_files_are_listed_per_turn(work: WorkingSession) -> None:
    work.begin_turn()
    state = FileState("directory", 0o755)
    changes = [Change.at(f"/{number}", ABSENT, state) for number in range(COPIED + 1)]
    work.emit(WorkspaceChanged(reason="shell", count=0), changes)
    (message,) = written(work)
    assert [file["path"] for file in message["files"]] == [f"/{n}" for n in range(COPIED)]


def test_changes_of_a_turn_are_combined_by_path_and_only_the_sessions_own_count(
    work: WorkingSession,
) -> None:
    work.begin_turn()
    (work.root / "a.txt").write_text("one\n")
    first = work.store.keep(work.path("a.txt"))
    work.write("a.txt", "two\n")
    work.write("theirs.txt", "x", "person")
    work.write("a.txt", "three\n", "shell")
    work.write("passing.txt", "x")
    work.remove("passing.txt")
    for reason in ("background", "interrupted", "undo", "redo", "rewind"):
        work.write(f"{reason}.txt", "x", reason)
    last = work.store.keep(work.path("a.txt"))
    assert changes_by_turn(work.folder.events, work.store) == {
        1: [Change.at(work.path("a.txt"), first, last)]
    }


@pytest.mark.parametrize(
    ("size", "lines"), [(COUNTED, 1024), (COUNTED + 1024, 0)], ids=["counted", "too large"]
)
def test_lines_of_large_files_are_not_counted(work: WorkingSession, size: int, lines: int) -> None:
    data = (b"x" * 1023 + b"\n") * (size // 1024)
    state = FileState("file", 0o644, work.store.put(data), size)
    assert count_change(Change.at("/a", ABSENT, state), work.store) == (lines, 0)
    assert count_change(Change.at("/a", state, ABSENT), work.store) == (0, lines)


def test_lines_of_links_and_of_lost_files_are_not_counted(work: WorkingSession) -> None:
    link = FileState("symlink", digest=work.store.put(b"target\n"))
    lost = FileState("file", 0o644, "0" * 64, 1)
    kept = FileState("file", 0o644, work.store.put(b"one\n"), 4)
    unkept = FileState("file", 0o644, "", 4)
    assert count_change(Change.at("/a", ABSENT, link), work.store) == (0, 0)
    assert count_change(Change.at("/a", lost, kept), work.store) == (0, 0)
    assert count_change(Change.at("/a", kept, lost), work.store) == (0, 0)
    assert count_change(Change.at("/a", kept, unkept), work.store) == (0, 1)
