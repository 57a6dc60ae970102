"""Git objects are kept by hard links and restored when they are missing."""

import hashlib
import os
import shutil
import stat
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
        kept = [path for path in Path(other).rglob("*") if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
        before = listed(objects)
        shutil.rmtree(objects)
        assert held.restore_missing([str(repository / ".git")]) == len(before)
        assert listed(objects) == before
        modes = {stat.S_IMODE((objects / name).stat().st_mode) for name in before}
        assert modes == {0o444}  # as git has them
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


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A folder of objects, as git would have them."""
    folder = tmp_path / "plain" / "objects"
    for name in ("0a", "0b", "0c", "0d", "zz"):
        (folder / name).mkdir(parents=True)
        (folder / name / "one").write_text(name)
    return folder


@pytest.fixture
def held(tmp_path: Path) -> GitObjects:
    return GitObjects(str(tmp_path / "held"))


def kept(tmp_path: Path) -> list[str]:
    """The names of the kept objects of the only repository."""
    (folder,) = (tmp_path / "held").iterdir()
    return sorted(path.name for path in folder.iterdir() if path.name != gitobjects.PATH)


def set_times(objects: Path, nanoseconds: int) -> None:
    for folder in objects.iterdir():
        os.utime(folder, ns=(nanoseconds, nanoseconds))


def test_a_repository_has_a_private_folder_that_says_where_its_objects_were(
    objects: Path, held: GitObjects, tmp_path: Path
) -> None:
    assert held.keep(str(objects), NEVER) == ""
    (folder,) = (tmp_path / "held").iterdir()
    assert folder.name == hashlib.sha256(os.fsencode(objects)).hexdigest()[:16]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / gitobjects.PATH).read_bytes() == os.fsencode(objects)
    assert stat.S_IMODE((folder / gitobjects.PATH).stat().st_mode) == 0o600
    assert kept(tmp_path) == ["0a!one", "0b!one", "0c!one", "0d!one", "zz!one"]
    assert (folder / "0a!one").stat().st_ino == (objects / "0a" / "one").stat().st_ino


def test_a_new_object_in_any_folder_is_kept(
    objects: Path, held: GitObjects, tmp_path: Path
) -> None:
    set_times(objects, 10**18)
    held.keep(str(objects), NEVER)
    for folder in sorted(objects.iterdir()):
        (folder / "two").write_text("later")
        assert held.keep(str(objects), NEVER) == ""
        assert f"{folder.name}!two" in kept(tmp_path)


@pytest.mark.parametrize(("age", "read"), [(0, True), (10**9, False)])
def test_a_folder_is_read_again_unless_its_time_shows_that_nothing_changed(
    objects: Path, held: GitObjects, tmp_path: Path, age: int, read: bool
) -> None:
    # A time in the future is as near as one that has just passed, however slow the machine is.
    then = 10**18 if age else time.time_ns() + 60 * 10**9
    set_times(objects, then)
    held.keep(str(objects), NEVER)
    (objects / "0a" / "two").write_text("later")
    set_times(objects, then)
    held.keep(str(objects), NEVER)
    assert ("0a!two" in kept(tmp_path)) is read


def test_unfinished_objects_are_not_kept(objects: Path, held: GitObjects, tmp_path: Path) -> None:
    (objects / "0a" / "tmp_obj_x").write_text("unfinished")
    (objects / "0a" / "tmp-x").write_text("another name")
    (objects / "0a" / "tmp_").write_text("unfinished")
    held.keep(str(objects), NEVER)
    assert [name for name in kept(tmp_path) if "tmp" in name] == ["0a!tmp-x"]


def test_objects_are_kept_up_to_a_number_and_the_rest_the_next_time(
    objects: Path, held: GitObjects, tmp_path: Path
) -> None:
    for number in range(gitobjects.MAX_OBJECTS - 5):
        os.link(objects / "0a" / "one", objects / "0a" / str(number))
    assert held.keep(str(objects), NEVER) == ""
    (objects / "0a" / "one more").write_text("x")
    assert held.keep(str(objects), NEVER) == ""
    another = GitObjects(str(tmp_path / "another"))
    many = f"{objects} has too many objects to be kept; git gc would help"
    assert another.keep(str(objects), NEVER) == many
    assert another.keep(str(objects), NEVER) == ""


def test_what_is_not_a_folder_of_objects_is_not_kept(
    objects: Path, held: GitObjects, tmp_path: Path
) -> None:
    for number in range(5):
        (objects / f"{number}-link").symlink_to("nowhere")
        (objects / f"file-{number}").write_text("x")
    assert held.keep(str(objects), NEVER) == ""
    assert len(kept(tmp_path)) == 5
    os.mkfifo(tmp_path / "pipe")
    said = held.keep(str(tmp_path / "pipe"), NEVER)
    assert said == f"the objects in {tmp_path}/pipe are not kept (Not a directory)"


def test_an_object_comes_back_under_its_whole_name(
    objects: Path, held: GitObjects, tmp_path: Path
) -> None:
    (objects / "0a" / "a!b!c").write_text("odd")
    held.keep(str(objects), NEVER)
    shutil.rmtree(objects)
    assert held.restore_missing([str(objects.parent)]) == 6
    assert (objects / "0a" / "a!b!c").read_text() == "odd"
    assert held.restore_missing([str(objects.parent)]) == 0


@pytest.mark.parametrize("gone", ["0a", "zz"])
def test_an_object_that_is_gone_is_not_released(
    objects: Path, held: GitObjects, tmp_path: Path, gone: str
) -> None:
    held.keep(str(objects), NEVER)
    shutil.rmtree(objects / gone)
    held.release()
    assert kept(tmp_path) == [f"{gone}!one"]
    shutil.rmtree(objects)
    held.release()
    assert kept(tmp_path) == [f"{gone}!one"]


def test_without_anything_kept_there_is_nothing_to_release_or_restore(
    held: GitObjects, tmp_path: Path
) -> None:
    held.release()
    assert held.restore_missing([str(tmp_path)]) == 0
    (tmp_path / "held" / "damaged").mkdir(parents=True)
    assert held.restore_missing([str(tmp_path)]) == 0
