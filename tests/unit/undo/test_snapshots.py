"""Snapshots: the changes they find, the contents they restore, and what they do not cover."""

import os
import shutil
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change
from trimtab.undo import git_state as gitstate
from trimtab.undo import snapshots
from trimtab.undo.blobs import MAX_SIZE, BlobStore
from trimtab.undo.parallel_walk import ParallelWalk
from trimtab.undo.snapshots import Coverage, Snapshot
from trimtab.workspace.walk import look, walk

NEVER = float("inf")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "sub" / "b.bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("a.txt")
    return root


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def taken(root: Path, store: BlobStore) -> Snapshot:
    snapshot = Snapshot(str(root), store)
    assert snapshot.refresh() == []
    return snapshot


def by_name(changes: list[Change]) -> dict[str, Change]:
    return {os.path.basename(change.os_path): change for change in changes}


def test_an_unchanged_tree_has_no_changes(project: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    assert snapshot.refresh() == []
    assert snapshot.coverage.reason == ""


def test_what_is_deleted_can_be_given_back(project: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    (project / "sub" / "b.bin").unlink()
    (project / "link").unlink()
    changes = by_name(snapshot.refresh())
    assert store.get(changes["b.bin"].before.digest) == bytes(range(256))
    assert store.get(changes["link"].before.digest) == b"a.txt"
    assert changes["b.bin"].after.kind == "absent"


def test_a_change_in_place_that_keeps_size_and_times_is_seen(
    project: Path, store: BlobStore
) -> None:
    path = project / "a.txt"
    snapshot = taken(project, store)
    before = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    change = by_name(snapshot.refresh())["a.txt"]
    assert (store.get(change.before.digest), store.get(change.after.digest)) == (b"one\n", b"two\n")


def test_a_mode_alone_is_a_change(project: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    (project / "a.txt").chmod(0o755)
    change = by_name(snapshot.refresh())["a.txt"]
    assert (change.before.mode, change.after.mode) == (0o644, 0o755)


def test_names_that_are_not_utf8_survive(project: Path, store: BlobStore) -> None:
    name = os.fsencode(project) + b"/caf\xe9.txt"
    with open(name, "wb") as file:
        file.write(b"x")
    snapshot = taken(project, store)
    os.unlink(name)
    (change,) = snapshot.refresh()
    assert os.fsencode(change.os_path) == name
    assert change.path.isprintable()


def test_a_file_too_large_to_keep_is_counted_as_uncovered(project: Path, store: BlobStore) -> None:
    with open(project / "huge", "wb") as file:
        file.truncate(MAX_SIZE + 1)
    snapshot = taken(project, store)
    assert snapshot.coverage.uncovered == 1
    assert "1 file" in snapshot.coverage.reason


def test_what_could_be_restored_is_told_for_each_path(project: Path, store: BlobStore) -> None:
    (project / "data").mkdir()
    with open(project / "data/huge", "wb") as file:
        file.truncate(MAX_SIZE + 1)
    (project / "data2").mkdir()
    (project / "data2/small").write_text("x")
    snapshot = Snapshot(str(project), store)
    assert not snapshot.keeps(str(project / "data2")), "nothing was looked at yet"
    snapshot.refresh()
    assert snapshot.keeps(str(project / "data2"))
    assert snapshot.keeps(str(project / "data2/small"))
    assert not snapshot.keeps(str(project / "data"))
    assert not snapshot.keeps(str(project / "data/huge"))
    assert not snapshot.keeps(str(project.parent / "elsewhere"))


def test_a_home_directory_is_never_looked_at(project: Path, store: BlobStore) -> None:
    snapshot = Snapshot(str(project), store, forbidden=[str(project)])
    assert snapshot.refresh() == []
    assert "not a project folder" in snapshot.coverage.reason
    assert not os.path.exists(store.folder)


def test_the_root_of_the_disk_is_never_looked_at(store: BlobStore) -> None:
    snapshot = Snapshot("/", store)
    assert snapshot.refresh() == []
    assert snapshot.coverage.reason


def test_a_second_look_has_the_time_that_the_first_had_not(project: Path, store: BlobStore) -> None:
    snapshot = Snapshot(str(project), store)
    snapshot.refresh(seconds=-1)
    assert snapshot.coverage.uncovered == 2
    snapshot.refresh()
    assert snapshot.coverage.uncovered == 0


def test_git_state_is_part_of_it_and_objects_are_not(project: Path, store: BlobStore) -> None:
    (project / ".git" / "refs" / "heads").mkdir(parents=True)
    (project / ".git" / "objects").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    ref = project / ".git" / "refs" / "heads" / "main"
    ref.write_text("1" * 40 + "\n")
    snapshot = taken(project, store)
    ref.write_text("2" * 40 + "\n")
    (project / ".git" / "objects" / "x").write_text("object")
    assert set(by_name(snapshot.refresh())) == {"main"}


def test_a_fifo_blocks_nobody(project: Path, store: BlobStore) -> None:
    os.mkfifo(project / "pipe")
    snapshot = taken(project, store)
    (project / "pipe").unlink()
    assert snapshot.refresh() == []


def test_two_processes_see_what_one_sees(project: Path) -> None:
    for folder in range(70):
        (project / f"d{folder}" / "e").mkdir(parents=True)
        (project / f"d{folder}" / "e" / "f.txt").write_text(str(folder))
    skip = frozenset((".git", "d3"))
    passed, others = list[str](), list[str]()
    alone = walk([str(project)], skip, 10_000, NEVER, passed)
    parallel = ParallelWalk(str(project))
    assert parallel.walk(skip, snapshots.ENTRIES, 1e12, others) == alone
    assert sorted(passed) == sorted(others) == [str(project / "d3")]
    assert len(alone) > 200
    for changed in range(0, 70, 7):  # whoever looks at it, a change is seen
        (project / f"d{changed}" / "e" / "f.txt").write_text("changed")
        (project / f"d{changed + 1}" / "e" / "f.txt").unlink()
        now = walk([str(project)], skip, 10_000, NEVER)
        assert parallel.walk(skip, snapshots.ENTRIES, 1e12, []) == now != alone
        alone = now


def test_kept_contents_are_found_by_another_process(project: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    state = snapshot.state(str(project / "a.txt"))
    assert state is not None
    assert BlobStore(store.folder).get(state.digest) == b"one\n"


def test_a_damaged_copy_is_noticed(store: BlobStore) -> None:
    digest = store.put(b"precious")
    with open(store.path(digest), "wb") as file:
        file.write(b"other")
    with pytest.raises(OSError, match="damaged"):
        store.get(digest)


def test_a_git_folder_that_was_too_large_does_not_seem_new_when_it_is_smaller(
    project: Path, store: BlobStore
) -> None:
    heads = project / ".git" / "refs" / "heads"
    heads.mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git" / "description").write_text("about")
    (heads / "main").write_text("1")
    snapshot = taken(project, store)
    for folder in range(101):
        (heads / f"d{folder}").mkdir()
        for number in range(gitstate.MANY // 100):
            (heads / f"d{folder}" / f"b{number}").touch()
    (heads / "main").write_text("22")
    assert list(by_name(snapshot.refresh())) == ["main"]
    assert "too many files" in snapshot.coverage.reason
    for folder in range(101):
        shutil.rmtree(heads / f"d{folder}")
    (heads / "main").write_text("333")
    assert list(by_name(snapshot.refresh())) == ["main"]


def test_a_folder_that_only_claims_to_be_a_repository_is_not_looked_at(
    project: Path, store: BlobStore
) -> None:
    elsewhere = project.parent / "home"
    elsewhere.mkdir()
    (project / ".git").write_text(f"gitdir: {elsewhere}\n")
    (elsewhere / "HEAD").write_text("ref: ../../secret\n")
    snapshot = taken(project, store)
    (elsewhere / "letter").write_text("private")
    assert snapshot.refresh() == []
    (elsewhere / "objects").mkdir()
    assert "letter" in by_name(snapshot.refresh())


def test_a_file_that_is_made_again_is_new_also_with_the_same_content(
    project: Path, store: BlobStore
) -> None:
    snapshot = taken(project, store)
    (project / "a.txt").unlink()
    assert by_name(snapshot.refresh())["a.txt"].after.kind == "absent"
    (project / "a.txt").write_text("one\n")
    again = by_name(snapshot.refresh())["a.txt"]
    assert (again.before.kind, again.after.kind) == ("absent", "file")
    assert store.get(again.after.digest) == b"one\n"


def test_a_snapshot_counts_what_it_covers(project: Path, store: BlobStore) -> None:
    assert taken(project, store).coverage.uncovered == 0
    assert Coverage() == Coverage(files=0, uncovered=0, reason="")


def test_folders_that_can_be_regenerated_are_covered_while_there_is_room(
    project: Path, store: BlobStore
) -> None:
    (project / "node_modules").mkdir()
    (project / "node_modules" / "a.js").write_text("x")
    snapshot = taken(project, store)
    known = snapshot.state(str(project / "node_modules" / "a.js"))
    assert known is not None
    assert store.get(known.digest) == b"x"
    assert snapshot.state(str(project) + "-other/a.txt") is None


def test_a_change_that_was_noted_is_not_found_again(project: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    changed, gone, made = project / "a.txt", project / "sub" / "b.bin", project / "new.txt"
    changed.write_text("two\n")
    made.write_text("new\n")
    gone.unlink()
    for path in (changed, gone, made):
        snapshot.note(str(path), store.keep(str(path)))
    assert snapshot.state(str(gone)) == ABSENT
    assert snapshot.state(str(changed)) == store.keep(str(changed))
    assert snapshot.refresh() == []


def test_a_path_elsewhere_is_not_noted(project: Path, tmp_path: Path, store: BlobStore) -> None:
    snapshot = taken(project, store)
    other = tmp_path / "other.txt"
    other.write_text("x")
    snapshot.note(str(other), store.keep(str(other)))
    assert snapshot.state(str(other)) is None
    assert snapshot.refresh() == []


def test_a_file_that_became_a_pipe_is_not_waited_for(project: Path, store: BlobStore) -> None:
    file = project / "a.txt"
    key = look(str(file))
    assert key is not None
    file.unlink()
    os.mkfifo(file)
    ((_, state),) = store.keep_many([(str(file), key)])
    assert not state.is_kept


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main\n", "refs/heads/main"),
        ("ref: refs/heads/../../evil\n", ""),
        ("ref: refs/heads/a\0b\n", ""),
        ("ref: main\n", ""),
        ("0123456789abcdef0123456789abcdef01234567\n", ""),
    ],
)
def test_only_a_ref_inside_the_git_folder_is_the_branch(
    tmp_path: Path, head: str, branch: str
) -> None:
    (tmp_path / "HEAD").write_text(head)
    assert gitstate.own_branch(str(tmp_path)) == branch


def test_folders_that_can_be_regenerated_are_left_out_of_a_tree_that_is_too_large(
    project: Path, store: BlobStore
) -> None:
    for name in ("one", "two"):  # in whichever order a file system lists them
        (project / "node_modules" / name).mkdir(parents=True)
        for number in range(30):
            (project / "node_modules" / name / f"{number}.js").touch()
    snapshot = Snapshot(str(project), store)
    snapshot.max_entries = 20
    assert snapshot.refresh() == []
    (project / "a.txt").write_text("two\n")
    (project / "node_modules" / "one" / "1.js").write_text("x")
    assert list(by_name(snapshot.refresh())) == ["a.txt"]


def test_the_objects_of_repositories_are_found(project: Path) -> None:
    for folder in (project / ".git", project / "sub" / "bare"):
        (folder / "refs").mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git" / "objects").mkdir()
    nested = [str(project / ".git"), str(project / "sub" / "bare")]
    found = gitstate.Repositories(str(project), nested, set())
    assert found.objects == [str(project / ".git" / "objects")]
