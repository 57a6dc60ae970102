"""Packs: many contents in one file, with a list that never names what is not there."""

import os
import stat
from pathlib import Path

import pytest

from trimtab.undo.packs import BUFFERED, LISTED, SUFFIX, Pack, read_lists, read_packed
from undokit import full_disk


def listed(folder: Path) -> dict[str, tuple[str, int, int]]:
    return read_lists(str(folder), sorted(path.name for path in folder.iterdir()))


def content(folder: Path, digest: str) -> bytes:
    return read_packed(str(folder), listed(folder)[digest])


def test_contents_follow_each_other_and_are_found_by_their_positions(tmp_path: Path) -> None:
    pack = Pack(str(tmp_path))
    positions = [
        pack.add(digest, data) for digest, data in (("a", b"one"), ("b", b""), ("c", b"x"))
    ]
    assert positions == [(pack.name, 0, 3), (pack.name, 3, 0), (pack.name, 3, 1)]
    assert listed(tmp_path) == {}
    pack.flush()
    pack.add("d", b"later")
    pack.flush()
    pack.flush()
    pack.close()
    assert (tmp_path / pack.name).read_bytes() == b"onexlater"
    assert list(listed(tmp_path)) == ["a", "b", "c", "d"]
    assert [content(tmp_path, digest) for digest in "abcd"] == [b"one", b"", b"x", b"later"]


def test_a_pack_is_private_and_named_for_its_process(tmp_path: Path) -> None:
    packs = [Pack(str(tmp_path)) for _ in range(2)]
    assert packs[0].name != packs[1].name
    for path in tmp_path.iterdir():
        assert path.name.startswith(f"{os.getpid()}-")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for pack in packs:
        pack.close()


def test_contents_are_written_once_there_are_many(tmp_path: Path) -> None:
    pack = Pack(str(tmp_path))
    pack.add("a", b"x" * BUFFERED)
    assert listed(tmp_path) == {}
    pack.add("b", b"y")
    assert (content(tmp_path, "a"), content(tmp_path, "b")) == (b"x" * BUFFERED, b"y")
    pack.add("c", b"z")
    assert list(listed(tmp_path)) == ["a", "b"]
    pack.close()


def test_contents_that_did_not_fit_are_not_listed(tmp_path: Path) -> None:
    pack = Pack(str(tmp_path))
    pack.add("a", b"one")
    with full_disk(), pytest.raises(OSError, match="File too large"):
        pack.flush()
    assert listed(tmp_path) == {}
    pack.close()


def test_the_lists_of_all_processes_are_read_up_to_a_torn_line(tmp_path: Path) -> None:
    (tmp_path / "0123").write_bytes(b"a blob beside them")
    (tmp_path / f"1{LISTED}").write_bytes(b"a 0 3\nb 3 4\n")
    (tmp_path / "2").write_bytes(b"x 0 1\n")
    (tmp_path / f"3{LISTED}").write_bytes(b"c 5 6\nd 11 1")
    assert listed(tmp_path) == {
        "a": (f"1{SUFFIX}", 0, 3),
        "b": (f"1{SUFFIX}", 3, 4),
        "c": (f"3{SUFFIX}", 5, 6),
    }
