"""Kept contents: found again byte by byte, within the room there is, and never half written."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, FileState
from trimtab.undo.blobs import (
    CAPACITY,
    CLONE_FROM,
    PACK_BELOW,
    BlobStore,
    digest_of_open,
    unkept_state,
)
from trimtab.workspace.walk import look
from undokit import full_disk

DATA = b"precious\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def store(folder: Path) -> BlobStore:
    return BlobStore(str(folder))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def file_of(tmp_path: Path, data: bytes, name: str = "a.txt") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def keep_listed(store: BlobStore, *paths: str) -> list[FileState]:
    """Keep files in the way of a snapshot: by the keys with which they were listed."""
    rows = [(path, key) for path in paths if (key := look(path)) is not None]
    states = [state for _, state in store.keep_many(rows)]
    store.flush()
    return states


def fill(folder: Path, left: int) -> BlobStore:
    """Return a store with room for so many bytes."""
    folder.mkdir(mode=0o700)
    with open(folder / "filling", "wb") as file:
        file.truncate(CAPACITY - left)
    return BlobStore(str(folder))


def test_a_blob_is_a_private_file_that_is_named_by_its_sha256(
    store: BlobStore, folder: Path
) -> None:
    digest = store.put(DATA)
    assert digest == hashlib.sha256(DATA).hexdigest()
    assert store.get(digest) == DATA
    assert Path(store.path(digest)).read_bytes() == DATA
    assert stat.S_IMODE(os.stat(store.path(digest)).st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_equal_contents_are_kept_once_also_by_another_process(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    digest = store.put(DATA)
    written = os.stat(store.path(digest)).st_ino
    assert store.put(DATA) == digest
    assert BlobStore(str(folder)).put(DATA) == digest
    again = BlobStore(str(folder))
    assert keep_listed(again, file_of(tmp_path, DATA)) == [FileState("file", 0o644, digest, 9)]
    assert names(folder) == [digest]
    assert os.stat(store.path(digest)).st_ino == written


def test_packed_contents_are_known_to_another_process(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    one, two = file_of(tmp_path, b"one", "1"), file_of(tmp_path, b"second", "2")
    states = keep_listed(store, one, two, file_of(tmp_path, b"one", "3"))
    assert [state.size for state in states] == [3, 6, 3]
    assert states[0].digest == states[2].digest
    packed = names(folder)
    assert [os.path.splitext(name)[1] for name in packed] == [".pack", ".packed"]
    assert (folder / packed[0]).read_bytes() == b"onesecond"
    other = BlobStore(str(folder))
    assert [other.get(state.digest) for state in states] == [b"one", b"second", b"one"]
    assert other.put(b"second") == states[1].digest
    assert names(folder) == packed


def test_a_store_goes_on_after_it_was_closed(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    (first,) = keep_listed(store, file_of(tmp_path, b"one", "1"))
    store.close()
    store.close()
    store.flush()
    (second,) = keep_listed(store, file_of(tmp_path, b"two", "2"))
    store.close()
    assert (store.get(first.digest), store.get(second.digest)) == (b"one", b"two")
    assert len(names(folder)) == 4


def test_lost_and_damaged_contents_are_errors(store: BlobStore, folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.get("0" * 64)
    digest = store.put(DATA)
    for number in range(9):
        Path(store.path(digest)).write_bytes(b"other %d" % number)
        with pytest.raises(OSError, match=f"The kept copy {digest[:12]} is damaged"):
            store.get(digest)


def test_each_kind_of_path_has_a_state(store: BlobStore, tmp_path: Path) -> None:
    path = file_of(tmp_path, DATA)
    os.chmod(path, 0o2640)
    (tmp_path / "folder").mkdir(mode=0o750)
    (tmp_path / "link").symlink_to("caf\udce9")
    os.mkfifo(tmp_path / "pipe")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    digest = hashlib.sha256(DATA).hexdigest()
    target = hashlib.sha256(b"caf\xe9").hexdigest()
    assert store.keep(path) == FileState("file", 0o2640, digest, 9)
    assert store.keep(str(tmp_path / "folder")) == FileState("directory", 0o750)
    assert store.keep(str(tmp_path / "link")) == FileState("symlink", digest=target)
    assert store.get(target) == b"caf\xe9"
    assert store.keep(str(tmp_path / "nothing")) == ABSENT
    assert store.keep(f"{path}/below") == ABSENT
    for name, kind in (("pipe", stat.S_IFIFO), ("socket", stat.S_IFSOCK)):
        special = store.keep(str(tmp_path / name))
        assert (special.kind, special.is_kept) == ("file", False)
        assert stat.S_IFMT(special.mode) == kind


@pytest.mark.parametrize(("size", "kept"), [(9, True), (10, True), (11, False)])
def test_a_file_is_kept_up_to_the_largest_size(
    store: BlobStore, tmp_path: Path, size: int, kept: bool
) -> None:
    state = store.keep(file_of(tmp_path, b"x" * size), 10)
    assert (state.kind, state.mode, state.size, state.is_kept) == ("file", 0o644, size, kept)


@pytest.mark.parametrize(("size", "packed"), [(PACK_BELOW, True), (PACK_BELOW + 1, False)])
def test_small_files_are_packed_and_large_ones_are_not(
    store: BlobStore, folder: Path, tmp_path: Path, size: int, packed: bool
) -> None:
    path = file_of(tmp_path, b"x" * size)
    os.chmod(path, 0o751)
    (state,) = keep_listed(store, path)
    assert (state.kind, state.mode, state.size) == ("file", 0o751, size)
    assert (state.digest in names(folder)) is not packed
    assert BlobStore(str(folder)).get(state.digest) == b"x" * size


@pytest.mark.parametrize(
    ("listed", "now"),
    [(b"when listed", b""), (b"when listed", b"then"), (b"listed", b"grew since"), (b"", b"x")],
)
def test_a_file_that_changed_since_it_was_listed_is_kept_as_it_is(
    store: BlobStore, tmp_path: Path, listed: bytes, now: bytes
) -> None:
    path = file_of(tmp_path, listed)
    key = look(path)
    assert key is not None
    Path(path).write_bytes(now)
    ((_, state),) = store.keep_many([(path, key)])
    assert (state.size, store.get(state.digest)) == (len(now), now)


def test_a_file_that_is_gone_or_a_link_since_it_was_listed_has_that_state(
    store: BlobStore, tmp_path: Path
) -> None:
    gone, replaced = file_of(tmp_path, b"1", "gone"), file_of(tmp_path, b"2", "replaced")
    rows = [(path, key) for path in (gone, replaced) if (key := look(path)) is not None]
    os.unlink(gone)
    os.unlink(replaced)
    os.symlink("gone", replaced)
    states = dict(store.keep_many(rows))
    assert states[gone] == ABSENT
    assert states[replaced] == FileState("symlink", digest=hashlib.sha256(b"gone").hexdigest())


@pytest.mark.parametrize(("size", "kept"), [(10, True), (11, False)])
@pytest.mark.parametrize("listed", [True, False])
def test_a_session_keeps_no_more_than_its_capacity(
    folder: Path, tmp_path: Path, size: int, kept: bool, listed: bool
) -> None:
    store = fill(folder, left=10)
    path = file_of(tmp_path, b"x" * size)
    state = keep_listed(store, path)[0] if listed else store.keep(path)
    assert (state.size, state.is_kept) == (size, kept)
    assert any(name.endswith(".pack") for name in names(folder)) is (listed and kept)


def test_a_link_that_leads_nowhere_among_the_blobs_does_no_harm(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "link").symlink_to("nowhere")
    store = BlobStore(str(folder))
    assert store.get(store.put(DATA)) == DATA


@pytest.mark.parametrize("listed", [True, False])
def test_everything_that_was_kept_counts_toward_the_capacity(
    folder: Path, tmp_path: Path, listed: bool
) -> None:
    store = fill(folder, left=20)
    for number, size in enumerate((6, 6)):
        path = file_of(tmp_path, str(number).encode() * size)
        assert (keep_listed(store, path)[0] if listed else store.keep(path)).is_kept
    path = file_of(tmp_path, b"x" * 9)
    assert not (keep_listed(store, path)[0] if listed else store.keep(path)).is_kept
    assert store.keep(file_of(tmp_path, b"y" * 8)).is_kept


def test_a_large_file_is_kept_whole_and_leaves_nothing_else_behind(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    data = os.urandom(16) * (CLONE_FROM // 16) + b"end"
    state = store.keep(file_of(tmp_path, data))
    assert store.get(state.digest) == data
    assert (state.size, names(folder)) == (len(data), [state.digest])


def test_the_digest_of_an_open_file_is_of_all_its_bytes(tmp_path: Path) -> None:
    data = os.urandom(16) * (CLONE_FROM // 8) + b"end"
    with open(file_of(tmp_path, data), "rb") as file:
        file.read(100)
        assert digest_of_open(file.fileno()) == hashlib.sha256(data).hexdigest()


def test_a_full_disk_leaves_no_half_written_blob(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    path = file_of(tmp_path, DATA)
    store.put(b"x")
    kept = names(folder)
    with full_disk():
        with pytest.raises(OSError, match="File too large"):
            store.put(DATA)
        assert store.keep(path) == FileState("file", 0o644, "", 9)
    assert names(folder) == kept
    assert store.get(store.put(DATA)) == DATA


def test_on_a_full_disk_the_target_of_a_link_is_not_kept(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    store.put(b"x")
    with full_disk():
        assert store.keep(str(tmp_path / "link")) == FileState("symlink")
    assert store.keep(str(tmp_path / "link")).is_kept


def test_without_a_folder_for_blobs_paths_have_a_state_but_no_content(
    store: BlobStore, folder: Path, tmp_path: Path
) -> None:
    folder.write_text("a file in its place")
    path = file_of(tmp_path, DATA)
    (tmp_path / "folder").mkdir(mode=0o711)
    (tmp_path / "link").symlink_to("a.txt")
    states = keep_listed(store, path, str(tmp_path / "folder"), str(tmp_path / "link"))
    assert states == [
        FileState("file", 0o644, "", 9),
        FileState("directory", 0o711),
        FileState("symlink"),
    ]
    with pytest.raises(OSError, match="blobs"):
        store.put(DATA)


@pytest.mark.parametrize(
    ("mode", "state"),
    [
        (stat.S_IFREG | 0o4755, FileState("file", 0o4755, "", 7)),
        (stat.S_IFDIR | 0o1777, FileState("directory", 0o1777)),
        (stat.S_IFLNK | 0o777, FileState("symlink")),
    ],
)
def test_a_state_without_content_says_what_the_listing_knew(mode: int, state: FileState) -> None:
    assert unkept_state((mode, 7, 1, 2, 3)) == state
