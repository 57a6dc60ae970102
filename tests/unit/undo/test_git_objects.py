"""Git objects are kept by hard links and restored when they are missing."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from gitkit import git
from trimtab.undo import git_objects as gitobjects
from trimtab.undo.git_objects import GitObjects

pytestmark = pytest.mark.needs("git")
NEVER = float("inf")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in ("one", "two", "three"):
        (folder / "a.txt").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", text)
    return folder


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_gone_comes_back_and_what_is_there_is_let_go(
    repository: Path, tmp_path: Path
) -> None:
    objects, held = repository / ".git" / "objects", GitObjects(str(tmp_path / "held"))
    before = listed(objects)
    assert held.keep(str(objects), NEVER) == ""
    assert held.keep(str(objects), NEVER) == ""
    gone = objects / before[0]
    gone.unlink()
    held.release()
    assert GitObjects(str(tmp_path / "held")).restore_missing([str(repository / ".git")]) == 1
    assert listed(objects) == before
    held.release()
    assert not (tmp_path / "held").exists()
    assert held.restore_missing([str(repository / ".git")]) == 0


def test_objects_that_come_later_are_held_too(repository: Path, tmp_path: Path) -> None:
    objects, held = repository / ".git" / "objects", GitObjects(str(tmp_path / "held"))
    held.keep(str(objects), NEVER)
    (repository / "a.txt").write_text("four")
    git(repository, "commit", "-qam", "four")
    git(repository, "gc", "-q")
    held.keep(str(objects), NEVER)
    before = git(repository, "log", "--format=%H")
    shutil.rmtree(objects)
    assert held.restore_missing([str(repository / ".git")]) > 0
    assert git(repository, "log", "--format=%H") == before
    assert git(repository, "fsck", "--full") == ""


def test_on_another_file_system_objects_are_copied_up_to_a_limit(repository: Path) -> None:
    objects = repository / ".git" / "objects"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        assert os.stat(other).st_dev != os.stat(objects).st_dev
        held = GitObjects(os.path.join(other, "held"))
        assert held.keep(str(objects), NEVER) == ""
        before = listed(objects)
        shutil.rmtree(objects)
        assert held.restore_missing([str(repository / ".git")]) == len(before)
        assert listed(objects) == before
        assert git(repository, "fsck", "--full") == ""
        held.release()
        pack = objects / "ff" / "pack"
        pack.parent.mkdir(exist_ok=True)
        with pack.open("wb") as file:
            file.truncate(gitobjects.MAX_COPIED)
        full = GitObjects(os.path.join(other, "full"))
        assert "are not kept" in full.keep(str(objects), NEVER)


def test_a_repository_that_is_gone_altogether_is_not_made_again(
    repository: Path, tmp_path: Path
) -> None:
    objects, held = repository / ".git" / "objects", GitObjects(str(tmp_path / "held"))
    held.keep(str(objects), NEVER)
    shutil.rmtree(repository)
    assert held.restore_missing([str(repository / ".git")]) == 0
    assert not repository.exists()
    assert "No such file" in held.keep(str(objects), NEVER)


def test_only_repositories_that_were_touched_are_mended(repository: Path, tmp_path: Path) -> None:
    objects, held = repository / ".git" / "objects", GitObjects(str(tmp_path / "held"))
    held.keep(str(objects), NEVER)
    (objects / listed(objects)[0]).unlink()
    assert held.restore_missing([str(repository / "a.txt"), str(tmp_path)]) == 0
    assert held.restore_missing([str(repository / ".git" / "HEAD")]) == 1


def test_a_split_commit_graph_is_in_the_way_of_nothing(repository: Path, tmp_path: Path) -> None:
    objects, held = repository / ".git" / "objects", GitObjects(str(tmp_path / "held"))
    git(repository, "commit-graph", "write", "--reachable", "--split")
    assert (objects / "info" / "commit-graphs").is_dir()
    assert held.keep(str(objects), NEVER) == ""
    shutil.rmtree(objects)
    held.restore_missing([str(repository / ".git")])
    assert git(repository, "fsck", "--full") == ""


def test_objects_are_kept_only_until_the_time_is_over(repository: Path, tmp_path: Path) -> None:
    objects = str(repository / ".git" / "objects")
    kept = GitObjects(str(tmp_path / "kept"))
    assert "too many objects" in kept.keep(objects, time.monotonic() - 1)
    assert kept.keep(objects, NEVER) == ""
