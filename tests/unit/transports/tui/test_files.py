"""Fuzzy completion of files: what matches, and how fast with many files."""

import os
import time
from pathlib import Path

import pytest

from gitkit import git
from trimtab.transports.tui.files import Paths, list_files


def test_names_come_before_folders_and_letters_match_in_order() -> None:
    paths = Paths(["parser/readme.md", "src/parser.py", "src/other_parts_serial.py", "x.txt"])
    assert paths.match("parser") == ["src/parser.py", "parser/readme.md"]
    assert paths.match("opser") == ["src/other_parts_serial.py"]
    assert paths.match("SR/P") == ["src/parser.py", "src/other_parts_serial.py"]
    assert paths.match("zzz") == []
    assert paths.match("^]-") == []


def test_without_letters_the_files_nearest_to_the_folder_are_offered() -> None:
    paths = Paths(["b/c/deep.py", "b/near.py", "a.txt", "c.txt"])
    assert paths.match("") == ["a.txt", "c.txt", "b/near.py", "b/c/deep.py"]
    assert Paths().match("") == []


QUERIES = ("", "f", "/", "fnp", "zq", "e9e9e9e9e9", "fo/mo/fi/99", "fileeeeee", "lorem ipsum")


def test_a_key_takes_at_most_50_ms_among_100_000_files() -> None:
    names = [f"folder{n % 300}/module{n % 77}/file_number_{n}.py" for n in range(100_000)]
    paths = Paths(names)
    queries = [*("number_4242"[:end] for end in range(1, 12)), *QUERIES]
    spent = [min(_seconds(paths, query) for _ in range(5)) for query in queries]
    assert sorted(spent)[len(spent) // 2] <= 0.05
    assert max(spent) <= 0.1  # a busy machine; `@` alone and letters in order took 0.3
    assert paths.match("number_42424")[0].endswith("file_number_42424.py")


def _seconds(paths: Paths, query: str) -> float:
    began = time.process_time()
    paths.match(query)
    return time.process_time() - began


def test_ignored_folders_are_left_out_without_a_repository(tmp_path: Path) -> None:
    for name in ("src/a.py", "node_modules/b.js", ".venv/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list_files(str(tmp_path)) == ["src/", "src/a.py"]


@pytest.mark.needs("git")
def test_listing_files_starts_no_program_of_the_repository(tmp_path: Path) -> None:
    """The monitor in the configuration of an archive's repository ran at the start."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "a.txt")
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n")
    monitor.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(monitor))
    assert list_files(str(folder)) == ["a.txt"]
    assert not (tmp_path / "started").exists()


@pytest.mark.needs("git")
def test_names_that_no_prompt_can_hold_are_left_out(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in (b"fine.txt", b"broken\xff.txt", b"two\nlines.txt"):
        with open(os.path.join(os.fsencode(tmp_path), name), "w", encoding="utf-8"):
            pass
    assert list_files(str(tmp_path)) == ["fine.txt"]
