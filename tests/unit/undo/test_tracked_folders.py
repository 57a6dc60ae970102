"""Several folders of one session, each with a snapshot and a journal of its own."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from trimtab.undo.blobs import BlobStore
from trimtab.undo.journal import NAME
from trimtab.undo.snapshots import Snapshot
from trimtab.undo.tracked_folders import TrackedFolders, find_tracked


class Opener:
    """Opens snapshots and notes what for."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = BlobStore(str(tmp_path / "blobs"))
        self.opened: dict[str, tuple[str, Sequence[str]]] = {}

    def __call__(self, root: str, journal: str, inside: Sequence[str]) -> Snapshot:
        self.opened[root] = os.path.basename(journal), inside
        return Snapshot(root, self.store, skipped=inside, journal=journal)


def make(tmp_path: Path, *names: str) -> list[str]:
    for name in names:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    return [str(tmp_path / name) for name in names]


def test_the_first_folder_has_the_plain_journal_and_the_others_names_of_their_own(
    tmp_path: Path,
) -> None:
    one, two, three = make(tmp_path, "one", "two", "three")
    (journals,) = make(tmp_path, "journals")
    opener = Opener(tmp_path)
    tracked = TrackedFolders([two, one], journals, opener)
    tracked.add([three, two])
    names = [opener.opened[root][0] for root in (two, one, three)]
    assert names[0] == NAME
    digests = [hashlib.sha256(os.fsencode(root)).hexdigest() for root in (one, three)]
    assert names[1:] == [f"{digest[:16]}.{NAME}" for digest in digests]  # as earlier versions did
    assert all(name.endswith(f".{NAME}") for name in names[1:])
    assert len(set(names)) == 3
    for folder in (one, two, three):
        (Path(folder) / "file").write_text("x")
    tracked.refresh()
    tracked.close()
    assert sorted(find_tracked(journals)) == sorted([one, three])


def test_a_folder_inside_another_is_tracked_once(tmp_path: Path) -> None:
    outer, inner, beside = make(tmp_path, "a", "a/b", "ab")
    opener = Opener(tmp_path)
    tracked = TrackedFolders([inner, outer, beside], str(tmp_path), opener)
    assert set(opener.opened[outer][1]) == {inner}
    assert not opener.opened[inner][1]
    assert not opener.opened[beside][1]
    tracked.add([str(tmp_path / "a" / "c")])
    assert set(opener.opened) == {outer, inner, beside}
    assert set(tracked.coverage) == {outer, inner, beside}
    tracked.refresh()
    (tmp_path / "a" / "b" / "new").write_text("x")
    (change,) = [change for change in tracked.refresh() if change.os_path.endswith("new")]
    assert change.after.kind == "file"
    assert tracked.state(change.os_path) == change.after
    assert tracked.state("/nowhere") is None
    tracked.close()


class WatchedSnapshot(Snapshot):
    """Notes whether it was closed, and whether it holds the objects of git."""

    calls: list[tuple[str, str]]

    def hold(self, seconds: float = 5.0) -> None:
        self.calls.append(("hold", self._root))

    def close(self) -> None:
        self.calls.append(("close", self._root))
        super().close()


def test_every_folder_is_held_noted_recalled_and_closed(tmp_path: Path) -> None:
    roots = make(tmp_path, "one", "two")
    store = BlobStore(str(tmp_path / "blobs"))
    calls: list[tuple[str, str]] = []

    def open_snapshot(root: str, journal: str, inside: Sequence[str]) -> Snapshot:
        snapshot = WatchedSnapshot(root, store, journal=journal)
        snapshot.calls = calls
        return snapshot

    tracked = TrackedFolders(roots, str(tmp_path), open_snapshot)
    assert not tracked.recall()
    assert tracked.refresh() == []
    tracked.hold()
    assert calls == [("hold", root) for root in roots]
    paths = [os.path.join(root, "a.txt") for root in roots]
    for path in paths:
        Path(path).write_text("x")
        tracked.note(path, store.keep(path))
        assert tracked.state(path) == store.keep(path)
    assert tracked.refresh() == []
    tracked.close()
    assert calls[2:] == [("close", root) for root in roots]
    again = TrackedFolders(roots, str(tmp_path), open_snapshot)
    assert again.recall()
    assert [again.state(path) for path in paths] == [store.keep(path) for path in paths]
    again.close()


def test_folders_are_recalled_if_any_of_them_was_known(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one", "two")
    opener = Opener(tmp_path)
    (tmp_path / "two" / "a.txt").write_text("x")
    tracked = TrackedFolders([one, two], str(tmp_path), opener)
    tracked.refresh()
    tracked.close()
    again = TrackedFolders([one, two], str(tmp_path), opener)
    assert again.recall()
    again.close()
