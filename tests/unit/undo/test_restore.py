"""A path is restored to an earlier state, with its mode and links, and nothing is left behind."""

import errno
import os
import stat
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, FileState
from trimtab.undo.blobs import BlobStore
from trimtab.undo.restore import finish, remove, restore
from undokit import full_disk


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def file_state(store: BlobStore, text: str, mode: int = 0o644) -> FileState:
    return FileState("file", mode, store.put(text.encode()), len(text))


def put(path: Path, kind: str) -> None:
    """Put something there; the folder above may be missing."""
    if kind != "absent":
        path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_text("in the way\n")
    elif kind == "directory":
        path.mkdir()
    elif kind == "symlink":
        path.symlink_to("nowhere")


@pytest.mark.parametrize("there", ["absent", "file", "directory", "symlink"])
@pytest.mark.parametrize("kind", ["absent", "file", "directory", "symlink"])
def test_any_kind_of_path_takes_the_place_of_any_other(
    root: Path, store: BlobStore, there: str, kind: str
) -> None:
    path = root / "deep" / "er" / "a"
    put(path, there)
    states = {
        "absent": ABSENT,
        "file": file_state(store, "back\n", 0o640),
        "directory": FileState("directory", 0o750),
        "symlink": FileState("symlink", digest=store.put(b"../b")),
    }
    restore(str(path), states[kind], store.keep(str(path)), store)
    assert store.keep(str(path)) == states[kind]
    above = path.parent
    assert not above.exists() or [name.name for name in above.iterdir()] in (["a"], [])


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
@pytest.mark.parametrize("before", [0o644, 0o700])
def test_a_file_has_its_content_and_mode_again(
    root: Path, store: BlobStore, before: int, mode: int
) -> None:
    path = root / "a.txt"
    path.write_text("new\n")
    path.chmod(before)
    restore(str(path), file_state(store, "old\n", mode), store.keep(str(path)), store)
    assert path.read_text() == "old\n"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_both_names_of_a_file_show_its_content(root: Path, store: BlobStore) -> None:
    path, other = root / "a.txt", root / "b.txt"
    path.write_text("new\n")
    os.link(path, other)
    restore(str(path), file_state(store, "old\n"), store.keep(str(path)), store)
    assert other.read_text() == "old\n"


def test_a_directory_is_accessible_until_it_is_finished(root: Path, store: BlobStore) -> None:
    path, state = root / "sub", FileState("directory", 0o055)
    restore(str(path), state, ABSENT, store)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    finish(str(path), state)
    assert stat.S_IMODE(path.stat().st_mode) == 0o055
    finish(str(root / "gone"), state)


def test_a_directory_that_somebody_has_just_made_is_taken(root: Path, store: BlobStore) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "theirs.txt").write_text("x")
    restore(str(root / "sub"), FileState("directory", 0o711), ABSENT, store)
    assert stat.S_IMODE((root / "sub").stat().st_mode) == 0o711
    assert (root / "sub" / "theirs.txt").exists()


def test_a_file_that_somebody_has_just_made_is_not_replaced(root: Path, store: BlobStore) -> None:
    (root / "a.txt").write_text("theirs\n")
    with pytest.raises(FileExistsError):
        restore(str(root / "a.txt"), file_state(store, "old\n"), ABSENT, store)
    assert (root / "a.txt").read_text() == "theirs\n"
    assert os.listdir(root) == ["a.txt"]


def test_a_name_that_is_too_long_is_reported_as_that(root: Path, store: BlobStore) -> None:
    with pytest.raises(OSError, match="too long") as raised:
        restore(str(root / ("x" * 300)), file_state(store, "old\n"), ABSENT, store)
    assert raised.value.errno == errno.ENAMETOOLONG
    assert os.listdir(root) == []


def test_a_full_disk_leaves_nothing_half_written(root: Path, store: BlobStore) -> None:
    state = file_state(store, "old\n")
    with full_disk(), pytest.raises(OSError, match="File too large"):
        restore(str(root / "a.txt"), state, ABSENT, store)
    assert os.listdir(root) == []


def test_what_is_gone_already_need_not_be_removed(root: Path) -> None:
    for kind in ("file", "symlink", "directory", "absent"):
        remove(str(root / "gone"), FileState(kind))


def test_a_directory_with_files_is_not_removed(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("x")
    with pytest.raises(OSError, match="not empty"):
        remove(str(root / "sub"), FileState("directory", 0o755))
    remove(str(root / "sub" / "a.txt"), ABSENT)
    assert (root / "sub" / "a.txt").exists()
