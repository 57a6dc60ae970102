"""Taking changes of one path back, around what others did to it."""

from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, Change, FileState
from trimtab.undo.blobs import BlobStore
from trimtab.undo.reversal import TOO_LARGE, reverse


def test_a_kept_copy_that_is_lost_is_told_of_with_the_reason(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "blobs"))
    file = tmp_path / "a.txt"
    states = []
    for text in ("one\n2\n3\n4\n5\n", "ONE\n2\n3\n4\n5\n", "ONE\n2\n3\n4\nmine\n"):
        file.write_text(text)
        states.append(store.keep(str(file)))
    store.close()
    first, second, now = states
    change = Change.at(str(file), first, second)
    merged, problem = reverse([change], now, BlobStore(str(tmp_path / "blobs")))
    assert problem == ""
    assert merged not in (first, second, now)
    empty = BlobStore(str(tmp_path / "none"))
    state, problem = reverse([change], now, empty)
    assert state == now
    assert problem == "its kept copy cannot be read (No such file or directory)"


def test_changes_are_taken_back_from_the_last_to_the_first(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "blobs"))
    file = tmp_path / "a.txt"
    states = [ABSENT]
    for text in ("one\n", "two\n"):
        file.write_text(text)
        states.append(store.keep(str(file)))
    changes = [Change.at(str(file), states[i], states[i + 1]) for i in (0, 1)]
    assert reverse(changes, states[2], store) == (ABSENT, "")
    assert reverse(changes[1:], states[2], store) == (states[1], "")


FILE = FileState(kind="file", mode=0o644, digest="a", size=1)
OTHER = FileState(kind="file", mode=0o644, digest="b", size=1)
LINK = FileState(kind="symlink", digest="c")
FOLDER = FileState(kind="directory", mode=0o755)
CLOSED = FileState(kind="directory", mode=0o700)
UNKEPT = FileState(kind="file", mode=0o644, size=1)
MERGE = "it has been changed by somebody else since, and it is too large to merge"


@pytest.mark.parametrize(
    ("before", "after", "current", "result", "problem"),
    [
        (ABSENT, FOLDER, CLOSED, ABSENT, ""),
        (FOLDER, CLOSED, FileState(kind="directory", mode=0o711), None, ""),
        (FILE, FOLDER, CLOSED, None, "a directory has been put there since"),
        (ABSENT, FOLDER, FILE, None, "something else has been put there since"),
        (FOLDER, ABSENT, LINK, None, "something else has been put there since"),
        (FILE, OTHER, ABSENT, ABSENT, ""),
        (FILE, ABSENT, LINK, None, "something else has been put there since"),
        (ABSENT, FILE, OTHER, None, "it was created here and has been changed"),
        (FILE, OTHER, LINK, None, "it has been changed by somebody else since"),
        (FILE, OTHER, FILE, FILE, ""),
        (FILE, OTHER, OTHER, FILE, ""),
        (UNKEPT, OTHER, OTHER, None, TOO_LARGE),
        (FILE, UNKEPT, UNKEPT, None, TOO_LARGE),
        (UNKEPT, ABSENT, ABSENT, None, TOO_LARGE),
        (ABSENT, UNKEPT, UNKEPT, None, TOO_LARGE),
        (UNKEPT, FILE, OTHER, None, MERGE),
        (FILE, UNKEPT, OTHER, None, MERGE),
        (FILE, OTHER, UNKEPT, None, MERGE),
        (LINK, FILE, OTHER, None, "it has been changed by somebody else since"),
        (FILE, LINK, OTHER, None, "it has been changed by somebody else since"),
        (FOLDER, FILE, CLOSED, None, ""),
        (FOLDER, ABSENT, CLOSED, None, ""),
    ],
)
def test_what_somebody_else_put_in_a_path_is_never_removed(
    tmp_path: Path,
    before: FileState,
    after: FileState,
    current: FileState,
    result: FileState | None,
    problem: str,
) -> None:
    change = Change.at("/p", before, after)
    state, said = reverse([change], current, BlobStore(str(tmp_path / "blobs")))
    assert state == (current if result is None else result)
    assert said.startswith(problem)
    assert bool(said) == bool(problem)


def test_a_mode_that_somebody_else_set_stays() -> None:
    now = FileState(kind="file", mode=0o755, digest=OTHER.digest, size=1)
    expected = FileState(kind="file", mode=0o755, digest=FILE.digest, size=1)
    store = BlobStore("/proc/nowhere")
    assert reverse([Change.at("/a", FILE, OTHER)], now, store) == (expected, "")
    unkept = FileState(kind="file", mode=0o644, size=1)
    state, problem = reverse([Change.at("/a", unkept, OTHER)], now, store)
    assert (state, problem) == (now, TOO_LARGE)


@pytest.mark.parametrize(("current", "result"), [(0o644, 0o755), (0o600, 0o600), (0o777, 0o777)])
def test_a_mode_goes_back_with_the_content_unless_somebody_else_set_another(
    current: int, result: int
) -> None:
    before = FileState(kind="file", mode=0o755, digest="a", size=1)
    after = FileState(kind="file", mode=0o644, digest="b", size=1)
    now = FileState(kind="file", mode=current, digest="a", size=1)
    state, problem = reverse([Change.at("/a", before, after)], now, BlobStore("/proc/nowhere"))
    assert (state, problem) == (FileState(kind="file", mode=result, digest="a", size=1), "")


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/a.txt", ""), ("/.git/config", "it has been changed by somebody else since")],
)
def test_edits_in_other_lines_are_merged_except_in_git_folders(
    tmp_path: Path, path: str, problem: str
) -> None:
    store = BlobStore(str(tmp_path / "blobs"))
    texts = (b"one\n2\n3\n", b"ONE\n2\n3\n", b"ONE\n2\nmine\n", b"one\n2\nmine\n")
    first, second, now, merged = (
        FileState(kind="file", mode=0o644, digest=store.put(text), size=len(text)) for text in texts
    )
    reversed_, said = reverse([Change.at(path, first, second)], now, store)
    assert (reversed_, said) == (now if problem else merged, problem)


def test_the_same_lines_changed_by_somebody_else_are_a_conflict(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path / "blobs"))
    first, second, now = (
        FileState(kind="file", mode=0o644, digest=store.put(text), size=4)
        for text in (b"one\n", b"two\n", b"you\n")
    )
    state, problem = reverse([Change.at("/a", first, second)], now, store)
    assert (state, problem) == (now, "the same lines have been changed by somebody else since")


def test_a_path_that_is_gone_returns_to_the_last_state_before_a_conflict(tmp_path: Path) -> None:
    changes = [Change.at("/a", ABSENT, FILE), Change.at("/a", OTHER, ABSENT)]
    state, problem = reverse(changes, ABSENT, BlobStore(str(tmp_path / "blobs")))
    assert (state, problem[:22]) == (OTHER, "it was created here an")
    changes[1] = Change.at("/a", OTHER, LINK)
    state, problem = reverse(changes, LINK, BlobStore(str(tmp_path / "blobs")))
    assert (state, bool(problem)) == (LINK, True)
