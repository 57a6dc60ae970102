"""Checkpoints: numbered files and the index of their titles."""

from pathlib import Path

import pytest

from trimtab.session.checkpoints import (
    HEADER,
    add_checkpoint,
    keep_checkpoints,
    list_checkpoints,
    read_titles,
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoints")


def test_checkpoints_are_numbered_and_named_for_their_titles(folder: str) -> None:
    assert list_checkpoints(folder) == []
    number, path = add_checkpoint(folder, "Fix the: Login!", "text é\ud800")
    assert (number, path) == (1, f"{folder}/001-fix-the-login.md")
    assert Path(path).read_text() == "text é?"
    assert add_checkpoint(folder, "!?", "two")[1].endswith("/002-checkpoint.md")
    Path(folder, "010-mine.md").write_text("ten")
    Path(folder, "notes.md").write_text("no number")
    assert add_checkpoint(folder, "next", "x")[0] == 11
    assert Path(folder).stat().st_mode & 0o777 == 0o700


def test_the_index_lists_titles_by_file(folder: str) -> None:
    assert read_titles(folder) == {}
    add_checkpoint(folder, "One | two", "x")
    add_checkpoint(folder, "Three", "x")
    index = Path(folder, "index.md").read_text()
    assert index.startswith(HEADER + "| 1 | One   two | 001-one-two.md | 20")
    assert index.count(HEADER) == 1
    assert len(index.splitlines()) == len(HEADER.splitlines()) + 2
    titles = read_titles(folder)
    assert titles["001-one-two.md"] == "One   two"
    assert titles["002-three.md"] == "Three"
    assert list_checkpoints(folder) == ["001-one-two.md", "002-three.md"]


@pytest.mark.parametrize(("count", "left"), [(-1, 0), (0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_the_first_checkpoints_are_kept(folder: str, count: int, left: int) -> None:
    for title in ("a", "b", "c"):
        add_checkpoint(folder, title, title)
    assert keep_checkpoints(folder, count) == left
    names = ["001-a.md", "002-b.md", "003-c.md"][:left]
    assert list_checkpoints(folder) == names
    assert [name for name in read_titles(folder) if name.endswith(".md")] == names
    assert Path(folder, "index.md").read_text().startswith(HEADER)


def test_keeping_all_of_none_makes_nothing(folder: str) -> None:
    assert keep_checkpoints(folder, 3) == 0
    assert not Path(folder).exists()
