"""Files that must not be read, under the names that they are given later."""

import os
from pathlib import Path

from trimtab.agents import moved_files
from trimtab.agents.moved_files import MovedFiles


def test_a_file_is_followed_through_renames_of_it_and_of_folders_above(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/secret").write_text("text")
    (tmp_path / "a/keys").mkdir()
    moved = MovedFiles()
    paths = [str(tmp_path / name) for name in ("a/b/secret", "a/keys", "a/missing")]
    moved.follow(paths)
    moved.follow(paths)
    assert moved.find() == paths[:2]
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "c/b/secret").rename(tmp_path / "known")
    assert moved.find() == [str(tmp_path / "known"), str(tmp_path / "c/keys")]


def test_a_removed_file_is_followed_no_more(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("text")
    before = len(os.listdir("/proc/self/fd"))
    moved = MovedFiles()
    moved.follow([str(tmp_path / "one"), str(tmp_path / "two")])
    (tmp_path / "two").rename(tmp_path / "one")
    assert moved.find() == [str(tmp_path / "one")]
    moved.forget()
    assert moved.find() == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_so_many_files_are_followed(tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number)) for number in range(moved_files.MAX_FOLLOWED + 1)]
    for path in paths:
        Path(path).touch()
    moved = MovedFiles()
    moved.follow(paths)
    assert moved.find() == paths[:-1]
