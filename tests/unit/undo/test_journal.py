"""The snapshot on disk: read only for the folder it was made of, whatever its end is like."""

import stat
from pathlib import Path

import pytest

from trimtab.contracts.changes import FileState
from trimtab.undo.journal import PIECE, Journal, read_root

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


def test_an_entry_has_its_key_and_state_and_any_bytes_in_its_name(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"), "/work")
    key = (0o100644, 3, 5, 7, 9)
    journal.add([("caf\udce9", key, STATE)])
    journal.add([("b", None, None)])
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o600
    assert list(journal.read()) == [(b"caf\xe9", key, STATE), (b"b", None, None)]
    journal.close()
    journal.close()
    journal.add([("c", None, STATE)])
    journal.close()
    assert names(tmp_path / "journal", "/work") == [b"caf\xe9", b"b", b"c"]


def test_many_entries_are_in_several_frames(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "/work")
    count = 2 * PIECE + 1
    journal.add((str(number), None, None) for number in range(count))
    journal.close()
    assert names(path, "/work") == [str(number).encode() for number in range(count)]
    torn = path.read_bytes()[:-1]
    path.write_bytes(torn)
    assert len(names(path, "/work")) == 2 * PIECE
    assert torn[13:21] != len(torn).to_bytes(8, "big")


def test_a_shorter_journal_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "/a/long/name/of/a/folder")
    journal.add((str(number), None, STATE) for number in range(100))
    journal.close()
    Journal(str(path), "/b").add([])
    assert path.read_bytes() == (2).to_bytes(8, "big") + b"/b"


def test_a_damaged_length_ends_a_journal(tmp_path: Path) -> None:
    path = written(tmp_path / "journal", "/work")
    with path.open("ab") as file:
        file.write(b"\xff" * 8 + b"rest")
    assert names(path, "/work") == [b"a.txt", b"gone"]
