"""Scans of a tree: in time or not, after a restart, and around the work of others."""

import gc
import mmap
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.undo.blobs import MAX_SIZE, BlobStore
from trimtab.undo.git_objects import GitObjects
from trimtab.undo.snapshots import TICK, Coverage, Snapshot
from trimtab.workspace.walk import Key
from undokit import full_disk

LEFT_OUT = "the tree is so large that node_modules, .venv and the like are left out"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("two\n")
    return root


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def names(changes: Iterable[Change]) -> list[str]:
    return sorted(os.path.basename(change.os_path) for change in changes)


def taken(project: Path, store: BlobStore, journal: str | None = None) -> Snapshot:
    snapshot = Snapshot(str(project), store, journal=journal)
    assert snapshot.refresh() == []
    return snapshot


def wait_until_old(folder: Path) -> None:
    """Wait until no file can change again without its times showing it."""
    newest = max(path.lstat().st_ctime_ns for path in folder.rglob("*"))
    while time.time_ns() - newest <= 2 * TICK:
        pass


def make_many(folder: Path, number: int) -> None:
    for name in ("one", "two"):  # in whichever order a file system lists them
        (folder / name).mkdir(parents=True)
        for file in range(number):
            (folder / name / f"{file}.js").touch()


class TestTime:
    def test_what_there_was_no_time_for_is_kept_by_the_next_scan(
        self, project: Path, store: BlobStore
    ) -> None:
        wait_until_old(project)
        snapshot = Snapshot(str(project), store)
        assert snapshot.refresh(seconds=-1) == []
        assert snapshot.coverage == Coverage(2, 2, "too large or too many to be kept: 2 files")
        state = snapshot.state(str(project / "a.txt"))
        assert state == FileState("file", 0o644, "", 4)
        assert snapshot.refresh() == []
        assert snapshot.coverage == Coverage(2, 0, "")
        state = snapshot.state(str(project / "a.txt"))
        assert state is not None
        assert store.get(state.digest) == b"one\n"

    def test_a_scan_without_time_counts_what_is_too_large_besides(
        self, project: Path, store: BlobStore
    ) -> None:
        with open(project / "huge", "wb") as file:
            file.truncate(MAX_SIZE + 1)
        wait_until_old(project)
        snapshot = taken(project, store)
        (project / "new.txt").write_text("x")
        assert names(snapshot.refresh(seconds=-1)) == ["new.txt"]
        assert snapshot.coverage.uncovered == 2
        os.unlink(project / "huge")
        snapshot.refresh()
        assert snapshot.coverage == Coverage(3, 0, "")

    @pytest.mark.parametrize("lacking", ["time", "room"])
    def test_a_new_file_is_unchanged_until_it_can_be_read_again(
        self, project: Path, store: BlobStore, tmp_path: Path, lacking: str
    ) -> None:
        with mapped(project / "a.txt") as memory:
            snapshot = taken(project, store)
            memory[0:3] = b"new"
            if lacking == "time":
                assert snapshot.refresh(seconds=-1) == []
            else:
                store.close()
                blobs = tmp_path / "blobs"
                blobs.rename(tmp_path / "away")
                assert snapshot.refresh() == []
                (tmp_path / "away").rename(blobs)
            assert snapshot.coverage.uncovered == 0
            wait_until_old(project)
            (change,) = snapshot.refresh()
        assert store.get(change.before.digest) == b"one\n"
        assert store.get(change.after.digest) == b"new\n"

    def test_keeping_ends_when_the_time_is_over(self, project: Path, tmp_path: Path) -> None:
        class SlowStore(BlobStore):
            def keep_many(self, rows: Iterable[tuple[str, Key]]) -> Iterator[tuple[str, FileState]]:
                for kept in super().keep_many(rows):
                    end = time.monotonic() + 0.02
                    while time.monotonic() < end:
                        pass
                    yield kept

        for number in range(8):
            (project / f"{number}.txt").touch()
        snapshot = Snapshot(str(project), SlowStore(str(tmp_path / "slow")))
        snapshot.refresh(seconds=0.01)
        assert snapshot.coverage.uncovered in (9, 10)

    def test_directories_and_links_need_no_time(self, tmp_path: Path, store: BlobStore) -> None:
        (tmp_path / "p" / "sub").mkdir(parents=True)
        snapshot = Snapshot(str(tmp_path / "p"), store)
        snapshot.refresh(seconds=-1)
        assert snapshot.coverage == Coverage(1, 0, "")


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Map a file that has just been written: what is written to it now changes none of its times."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = memory[0:1]
        yield memory


@pytest.mark.parametrize("restarted", [False, True])
def test_a_new_file_that_changes_without_its_times_showing_it_is_found(
    project: Path, store: BlobStore, tmp_path: Path, restarted: bool
) -> None:
    path, journal = project / "a.txt", str(tmp_path / "journal")
    with mapped(path) as memory:
        snapshot = taken(project, store, journal)
        before = path.stat()
        memory[0:3] = b"two"
        after = path.stat()
        assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
        if restarted:
            snapshot.close()
            snapshot = Snapshot(str(project), store, journal=journal)
            assert snapshot.recall()
        (change,) = snapshot.refresh()
    snapshot.close()
    assert (store.get(change.before.digest), store.get(change.after.digest)) == (b"one\n", b"two\n")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_it_was_after_a_scan(
    project: Path, store: BlobStore, enabled: bool
) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        taken(project, store)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_on_a_full_disk_a_scan_says_that_nothing_more_is_kept(
    project: Path, store: BlobStore
) -> None:
    snapshot = Snapshot(str(project), store)
    store.put(b"x")
    with full_disk():
        snapshot.refresh()
    assert snapshot.coverage.reason == "nothing more can be kept (File too large)"


class TestRestart:
    @pytest.fixture
    def journal(self, tmp_path: Path) -> str:
        return str(tmp_path / "journal")

    def test_changes_between_two_processes_are_found(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        snapshot = taken(project, store, journal)
        (project / "passing.txt").write_text("x")
        snapshot.refresh()
        (project / "passing.txt").unlink()
        snapshot.refresh()
        snapshot.close()
        assert journal not in [
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in os.listdir("/proc/self/fd")
            if os.path.lexists(f"/proc/self/fd/{fd}")
        ]
        (project / "a.txt").write_text("changed\n")
        (project / "b.txt").unlink()
        (project / "c.txt").write_text("new\n")
        later = Snapshot(str(project), store, journal=journal)
        assert later.recall()
        assert later.state(str(project / "b.txt")) != ABSENT
        assert later.state(str(project / "passing.txt")) == ABSENT
        changes = {os.path.basename(change.path): change for change in later.refresh()}
        later.close()
        assert sorted(changes) == ["a.txt", "b.txt", "c.txt"]
        assert store.get(changes["a.txt"].before.digest) == b"one\n"
        assert changes["b.txt"].after == changes["c.txt"].before == ABSENT

    def test_a_file_that_was_not_kept_is_kept_after_a_restart(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        wait_until_old(project)
        snapshot = Snapshot(str(project), store, journal=journal)
        snapshot.refresh(seconds=-1)
        snapshot.close()
        later = Snapshot(str(project), store, journal=journal)
        assert later.recall()
        assert later.refresh() == []
        assert later.coverage.uncovered == 0
        state = later.state(str(project / "a.txt"))
        assert state is not None
        assert store.get(state.digest) == b"one\n"
        later.close()

    def test_without_a_journal_or_with_a_damaged_one_nothing_is_recalled(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        assert not Snapshot(str(project), store).recall()
        assert not Snapshot(str(project), store, journal=journal).recall()
        taken(project, store, journal).close()
        size = os.path.getsize(journal)
        with open(journal, "ab") as file:
            file.write((3).to_bytes(8, "big") + b"bad")
        damaged = Snapshot(str(project), store, journal=journal)
        assert not damaged.recall()
        assert damaged.state(str(project / "a.txt")) is None
        assert damaged.refresh() == []
        os.truncate(journal, size)
        assert Snapshot(str(project), store, journal=journal).recall()

    def test_a_folder_that_is_not_a_project_is_not_recalled(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        taken(project, store, journal).close()
        forbidden = Snapshot(str(project), store, journal=journal, forbidden=[str(project)])
        assert not forbidden.recall()

    def test_what_was_noted_is_known_after_a_restart(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        snapshot = taken(project, store, journal)
        (project / "a.txt").write_text("by a tool\n")
        (project / "b.txt").unlink()
        for name in ("a.txt", "b.txt"):
            snapshot.note(str(project / name), store.keep(str(project / name)))
        snapshot.close()
        later = Snapshot(str(project), store, journal=journal)
        assert later.recall()
        assert later.refresh() == []
        later.close()

    def test_a_full_disk_is_no_reason_to_fail(
        self, project: Path, store: BlobStore, journal: str
    ) -> None:
        snapshot = taken(project, store, journal)
        (project / "a.txt").write_text("changed\n")
        with full_disk():
            assert names(snapshot.refresh()) == ["a.txt"]
        snapshot.close()


class TestLargeTree:
    def test_changes_of_folders_that_can_be_regenerated_are_found_while_there_is_room(
        self, project: Path, store: BlobStore
    ) -> None:
        make_many(project / "node_modules", 2)
        snapshot = taken(project, store)
        assert snapshot.refresh() == []
        (project / "node_modules" / "one" / "1.js").write_text("changed")
        (change,) = snapshot.refresh()
        assert (change.before.kind, change.after.size) == ("file", 7)

    def test_they_are_left_out_without_being_reported_when_the_tree_grows(
        self, project: Path, store: BlobStore
    ) -> None:
        make_many(project / "node_modules", 2)
        branch = project / ".git" / "refs" / "heads" / "build" / "x"
        branch.parent.mkdir(parents=True)
        branch.write_text("1")
        snapshot = taken(project, store)
        snapshot.max_entries = 20
        make_many(project / "node_modules" / "more", 30)
        (project / "a.txt").write_text("changed\n")
        assert names(snapshot.refresh()) == ["a.txt"]
        assert snapshot.coverage.reason == LEFT_OUT
        inside = str(project / "node_modules" / "one" / "1.js")
        assert snapshot.state(inside) is None
        snapshot.note(inside, ABSENT)
        branch.write_text("2")
        (change,) = snapshot.refresh()
        assert (change.os_path, change.before.kind) == (str(branch), "file")
        assert snapshot.coverage.reason == LEFT_OUT

    def test_a_git_folder_elsewhere_is_covered_whatever_the_path_to_it_is(
        self, project: Path, store: BlobStore, tmp_path: Path
    ) -> None:
        git = tmp_path / "build" / "git"
        (git / "objects").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (project / ".git").write_text(f"gitdir: {git}\n")
        snapshot = taken(project, store)
        snapshot.max_entries = 20
        make_many(project / "node_modules", 30)
        assert snapshot.refresh() == []
        (git / "HEAD").write_text("ref: refs/heads/other\n")
        (change,) = snapshot.refresh()
        assert (change.os_path, change.before.kind) == (str(git / "HEAD"), "file")

    def test_a_tree_that_is_too_large_in_any_case_is_not_covered(
        self, project: Path, store: BlobStore
    ) -> None:
        snapshot = taken(project, store)
        snapshot.max_entries = 20
        make_many(project / "src", 30)
        assert snapshot.refresh() == []
        reason = f"{project} has too many files to list in time"
        assert snapshot.coverage == Coverage(0, 0, reason)
        assert snapshot.state(str(project / "a.txt")) is None
        snapshot.max_entries = 200
        assert snapshot.refresh() == []
        (project / "a.txt").write_text("changed\n")
        assert names(snapshot.refresh()) == ["a.txt"]


class TestRepository:
    @pytest.fixture
    def git(self, project: Path) -> Path:
        git = project / ".git"
        for name in ("refs/heads", "logs/refs/heads", "objects/ab", "worktrees/theirs"):
            (git / name).mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "objects" / "ab" / "one").write_text("x")
        (git / "worktrees" / "theirs" / "HEAD").write_text("ref: refs/heads/other\n")
        for branch in ("main", "other", "free"):
            (git / "refs" / "heads" / branch).write_text("1\n")
        return git

    def test_commits_of_other_worktrees_are_not_changes_but_their_loss_is(
        self, project: Path, store: BlobStore, git: Path
    ) -> None:
        snapshot = taken(project, store)
        for branch in ("main", "other", "free"):
            (git / "refs" / "heads" / branch).write_text("2\n")
        assert names(snapshot.refresh()) == ["free", "main"]
        for branch in ("main", "other", "free"):
            (git / "refs" / "heads" / branch).unlink()
        assert names(snapshot.refresh()) == ["free", "main", "other"]

    def test_a_branch_that_was_checked_out_here_before_the_command_counts(
        self, project: Path, store: BlobStore, git: Path
    ) -> None:
        snapshot = taken(project, store)
        (git / "refs" / "heads" / "main").write_text("2\n")
        (git / "HEAD").write_text("ref: refs/heads/free\n")
        (git / "worktrees" / "theirs" / "HEAD").write_text("ref: refs/heads/main\n")
        assert names(snapshot.refresh()) == ["HEAD", "main"]
        (git / "refs" / "heads" / "main").write_text("3\n")
        assert snapshot.refresh() == []

    def test_objects_are_held_once_the_repository_is_known(
        self, project: Path, store: BlobStore, git: Path, tmp_path: Path
    ) -> None:
        objects = GitObjects(str(tmp_path / "held"))
        snapshot = Snapshot(str(project), store, objects=objects)
        snapshot.hold()
        assert not (tmp_path / "held").exists()
        snapshot.refresh()
        snapshot.hold(seconds=-1)
        many = f"{git}/objects has too many objects to be kept; git gc would help"
        assert snapshot.coverage.reason == many
        snapshot.hold()
        assert snapshot.coverage.reason == ""
        assert list((tmp_path / "held").glob("*/ab!one"))

    def test_without_a_place_for_objects_they_are_not_held(
        self, project: Path, store: BlobStore, git: Path
    ) -> None:
        snapshot = taken(project, store)
        snapshot.hold()
        assert snapshot.coverage.reason == ""

    def test_all_reasons_are_told_together(
        self, project: Path, store: BlobStore, git: Path, tmp_path: Path
    ) -> None:
        with open(project / "huge", "wb") as file:
            file.truncate(MAX_SIZE + 1)
        snapshot = Snapshot(str(project), store, objects=GitObjects(str(tmp_path / "held")))
        snapshot.refresh()
        snapshot.hold(seconds=-1)
        first, second = snapshot.coverage.reason.split("; ", 1)
        assert first == "too large or too many to be kept: 1 file"
        assert second.startswith(f"{git}/objects has too many objects")


class TestPaths:
    def test_nothing_is_known_before_the_first_scan(self, project: Path, store: BlobStore) -> None:
        snapshot = Snapshot(str(project), store)
        path = str(project / "a.txt")
        snapshot.note(path, ABSENT)
        assert snapshot.state(path) is None
        assert snapshot.refresh() == []
        assert snapshot.state(path) != ABSENT

    def test_a_skipped_folder_is_not_covered(self, project: Path, store: BlobStore) -> None:
        for name in ("inside", "inside-2"):
            (project / name).mkdir()
        snapshot = Snapshot(str(project), store, skipped=[str(project / "inside")])
        snapshot.refresh()
        for name in ("inside", "inside-2"):
            (project / name / "c.txt").write_text("x")
        (change,) = snapshot.refresh()
        assert change.os_path == str(project / "inside-2" / "c.txt")
        assert snapshot.state(str(project / "inside" / "c.txt")) is None
        assert snapshot.state(str(project / "inside-2" / "c.txt")) == change.after
        assert snapshot.state(str(project)) is None

    def test_the_refusal_says_where_to_work(self, project: Path, store: BlobStore) -> None:
        snapshot = Snapshot(str(project), store, forbidden=[str(project)])
        snapshot.refresh()
        expected = f"{project} is not a project folder; work in a folder below it to have undo"
        assert snapshot.coverage == Coverage(0, 0, expected)
