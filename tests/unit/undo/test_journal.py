"""The snapshot on disk: read only for the folder it was made of, whatever its end is like."""

from pathlib import Path

import pytest

from trimtab.contracts.changes import FileState
from trimtab.undo.journal import Journal, read_root

STATE = FileState(kind="file", mode=0o644, size=3, digest="d")


def written(path: Path, root: str) -> Path:
    journal = Journal(str(path), root)
    journal.add([("a.txt", None, STATE), ("gone", None, None)])
    journal.close()
    return path


def names(path: Path, root: str) -> list[bytes]:
    return [known[0] for known in Journal(str(path), root).read()]


@pytest.mark.parametrize("other", ["/a", "/z", "/work/sub", ""])
def test_a_journal_of_another_folder_is_not_read(tmp_path: Path, other: str) -> None:
    path = written(tmp_path / "journal", "/work")
    assert names(path, "/work") == [b"a.txt", b"gone"]
    assert names(path, other) == []
    assert read_root(str(path)) == "/work"


def test_a_journal_goes_on_where_it_ended_and_begins_anew_for_another_folder(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "journal", "/work")
    written(path, "/work")
    assert names(path, "/work") == [b"a.txt", b"gone"] * 2
    written(path, "/other")
    assert (names(path, "/work"), names(path, "/other")) == ([], [b"a.txt", b"gone"])


def test_a_torn_end_costs_only_the_last_frame(tmp_path: Path) -> None:
    path = written(tmp_path / "journal", "/work")
    whole = path.read_bytes()
    written(path, "/work")
    for cut in range(len(whole), len(path.read_bytes())):
        torn = tmp_path / "torn"
        torn.write_bytes(path.read_bytes()[:cut])
        assert names(torn, "/work") == [b"a.txt", b"gone"], cut


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert names(tmp_path / "none", "/work") == []
    assert read_root(str(tmp_path / "none")) == ""
