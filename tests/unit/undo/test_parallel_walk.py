"""A large tree is listed by two processes, with the same result as by one."""

import os
import sys
from pathlib import Path

import pytest

from trimtab.undo.parallel_walk import ParallelWalk
from trimtab.workspace.walk import TooLarge, walk

NEVER = float("inf")
SOON = 1e12
SKIP = frozenset((".git", "skipped"))
FAILED = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(); raise SystemExit(3)")
KILLED = (sys.executable, "-c", "import os, sys; sys.stdin.buffer.read(); os.kill(os.getpid(), 9)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with 80 folders on the third level, each with a folder of ten files."""
    for number in range(80):
        deep = tmp_path / f"d{number % 4}" / f"e{number % 8}" / f"f{number}" / "deep"
        deep.mkdir(parents=True)
        for name in range(10):
            (deep / str(name)).touch()
    return tmp_path


def listed(root: Path, limit: int = 10_000) -> tuple[dict[str, object], list[str]]:
    skipped: list[str] = []
    rows = ParallelWalk(str(root)).walk(SKIP, limit, SOON, skipped)
    return dict(rows), sorted(skipped)


def test_folders_to_skip_are_skipped_on_every_level(root: Path) -> None:
    for above in ("", "d0", "d0/e0", "d1/e1/f1", "d2/e2/f2/deep"):
        (root / above / "skipped").mkdir()
        (root / above / "skipped" / "a.txt").touch()
        (root / above / "a.txt").touch()
    (root / "d3" / "skipped").touch()
    (root / "d3" / "link").symlink_to("e3")
    whole: list[str] = []
    assert listed(root) == (walk([str(root)], SKIP, 10_000, NEVER, whole), sorted(whole))
    assert len(whole) == 5
    assert str(root / "d3" / "skipped") in listed(root)[0]


def test_a_path_to_skip_is_skipped_by_its_whole_name(root: Path) -> None:
    skip = frozenset((str(root / "d0"), str(root / "d1" / "e1" / "f1" / "deep")))
    skipped: list[str] = []
    rows = ParallelWalk(str(root)).walk(skip, 10_000, SOON, skipped)
    assert sorted(skipped) == sorted(skip)
    assert rows == walk([str(root)], skip, 10_000, NEVER)


def test_each_process_lists_its_half_alone(root: Path) -> None:
    half = 500  # of 80 folders with eleven entries
    assert len(listed(root, half)[0]) > 900
    with pytest.raises(TooLarge):
        walk([str(root)], SKIP, half, NEVER)
    with pytest.raises(TooLarge):
        listed(root, 300)


def test_the_other_process_says_that_its_half_is_too_large(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "1" / "2").mkdir(parents=True)
    second = tmp_path / os.listdir(tmp_path)[1] / "1" / "2"
    for number in range(6):
        (second / str(number)).mkdir()
        for file in range(10):
            (second / str(number) / str(file)).touch()
    with pytest.raises(TooLarge):
        listed(tmp_path, 20)
    assert len(listed(tmp_path, 100)[0]) == 72


def test_a_deadline_that_has_passed_makes_a_tree_too_large(root: Path) -> None:
    with pytest.raises(TooLarge):
        ParallelWalk(str(root)).walk(SKIP, 10_000, 0.0, [])


def test_a_folder_that_cannot_be_listed_is_empty(tmp_path: Path) -> None:
    assert listed(tmp_path / "gone") == ({}, [])


@pytest.mark.parametrize(
    "program",
    [("/no/such/program",), ("false",), FAILED, KILLED],
    ids=["not started", "ended at once", "failed", "killed"],
)
def test_without_the_other_process_one_lists_everything(
    root: Path, program: tuple[str, ...]
) -> None:
    (root / "d0" / "e0" / "f0" / "skipped").mkdir()
    many = SKIP | {f"name {number}" for number in range(20_000)}  # more than a pipe holds
    whole: list[str] = []
    skipped: list[str] = []
    rows = ParallelWalk(str(root), program).walk(many, 10_000, SOON, skipped)
    assert rows == walk([str(root)], many, 10_000, NEVER, whole)
    assert skipped == whole


def test_the_result_of_the_other_process_is_used(root: Path) -> None:
    answer = "import marshal, sys; sys.stdout.buffer.write(marshal.dumps(({'/a': (1, 2, 3, 4, 5)}, ['/b'])))"
    read = f"import sys; sys.stdin.buffer.read(); {answer}"
    skipped: list[str] = []
    rows = ParallelWalk(str(root), (sys.executable, "-c", read)).walk(SKIP, 10_000, SOON, skipped)
    assert rows["/a"] == (1, 2, 3, 4, 5)
    assert skipped == ["/b"]
    assert len(rows) < len(walk([str(root)], SKIP, 10_000, NEVER))
