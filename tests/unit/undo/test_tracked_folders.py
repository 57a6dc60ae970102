"""Several folders of one session, each with a snapshot and a journal of its own."""

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
    tracked = TrackedFolders([one, two], journals, opener)
    tracked.add([three, one])
    names = [opener.opened[root][0] for root in (one, two, three)]
    assert names[0] == NAME
    assert all(name.endswith(f".{NAME}") for name in names[1:])
    assert len(set(names)) == 3
    for folder in (one, two, three):
        (Path(folder) / "file").write_text("x")
    tracked.refresh()
    tracked.close()
    assert sorted(find_tracked(journals)) == sorted([two, three])


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
