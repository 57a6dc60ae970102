"""An undo in words: what happens to each path, and the diff of its text."""

from pathlib import Path

import pytest

from trimtab.contracts.changes import ABSENT, FileState
from trimtab.session.folder import SessionFolder
from trimtab.undo.blobs import BlobStore
from trimtab.undo.description import describe_plan, summarise_plan
from trimtab.undo.history import FileHistory, FilePlan, Plan


class Shown:
    """Describes plans for one file, whose states are kept as blobs."""

    def __init__(self, folder: Path) -> None:
        self.store = BlobStore(str(folder))
        session = SessionFolder(id="s", path=str(folder))
        self.history = FileHistory(session, self.store, lambda *_: None)

    def keep(self, data: bytes, mode: int = 0o644) -> FileState:
        return FileState("file", mode, self.store.put(data), len(data))

    def describe(self, current: FileState, target: FileState, problem: str = "") -> list[str]:
        file = FilePlan(path="a.txt", current=current, target=target, problem=problem)
        plan = Plan(action="undo", turn=1, events=(), files=(file,))
        return list(describe_plan(plan, self.history, diffs=True))


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_a_file_is_removed_brought_back_or_restored(shown: Shown) -> None:
    one, two = shown.keep(b"one\n"), shown.keep(b"two\n")
    assert shown.describe(one, ABSENT)[0] == "remove     a.txt"
    assert shown.describe(ABSENT, one)[0] == "bring back a.txt"
    assert shown.describe(one, two)[0] == "restore    a.txt"
    assert shown.describe(one, one) == []


def test_the_diff_numbers_its_hunks_and_shows_no_lines_around_them(shown: Shown) -> None:
    old = b"".join(b"%d\n" % number for number in range(30))
    new = old.replace(b"\n5\n", b"\nfive\n").replace(b"\n20\n", b"\ntwenty\n")
    lines = shown.describe(shown.keep(old), shown.keep(new))
    assert lines[3:] == [
        "  @@ -6 +6 @@  (hunk 1)",
        "  -5",
        "  +five",
        "  @@ -21 +21 @@  (hunk 2)",
        "  -20",
        "  +twenty",
    ]


def test_white_space_and_a_missing_newline_can_be_seen(shown: Shown) -> None:
    lines = shown.describe(shown.keep(b"\tx"), shown.keep(b"    x\n"))
    assert lines[4:] == ["  -\tx", "  -\\ No newline at end of file", "  +    x"]


@pytest.mark.parametrize(("old", "new"), [(b"a\0b", b"text\n"), (b"text\n", b"a\0b")])
def test_bytes_are_not_shown_as_text(shown: Shown, old: bytes, new: bytes) -> None:
    assert shown.describe(shown.keep(old), shown.keep(new))[1:] == ["  (not text)"]


def test_a_file_that_is_or_was_large_is_named_without_its_diff(shown: Shown) -> None:
    large, small = shown.keep(b"x\n" * (1 << 20)), shown.keep(b"x\n")
    for pair in ((large, small), (small, large)):
        assert shown.describe(*pair)[1:] == ["  (too large to show)"]


def test_a_long_diff_is_cut(shown: Shown) -> None:
    old, new = b"".join(b"%d\n" % n for n in range(500)), b""
    assert shown.describe(shown.keep(old), shown.keep(new))[-1] == "  …"


def test_modes_and_folders_are_marked(shown: Shown) -> None:
    data = shown.keep(b"x\n")
    script = FileState("file", 0o755, data.digest, data.size)
    assert shown.describe(script, data)[0] == "restore    a.txt (mode 755 to 644)"
    assert shown.describe(data, script)[0] == "restore    a.txt (mode 644 to 755)"
    assert shown.describe(ABSENT, FileState("directory", 0o755)) == ["bring back a.txt/"]
    assert shown.describe(FileState("directory", 0o755), ABSENT)[0] == "remove     a.txt/"


def test_conflicts_and_what_is_left_alone_are_named(shown: Shown) -> None:
    state = FileState("file", 0o644, "d", 1)
    file = FilePlan(path="a.txt", current=state, target=state, problem="it was\nchanged")
    plan = Plan(action="undo", turn=2, events=(), files=(file,), left=("b.txt",))
    assert list(describe_plan(plan, shown.history, diffs=True)) == [
        "conflict   a.txt: it was⏎changed",
        "left alone b.txt (name it with --file to include it)",
    ]
    assert list(summarise_plan(plan, preview=True)) == [
        "undo of turn 2 would change 0 paths; nothing has been changed.",
        "1 path with conflicts left unchanged: resolve them by hand, or undo more.",
    ]
    assert next(iter(summarise_plan(plan, preview=False))) == "undo of turn 2: 0 paths changed."


def test_a_file_that_was_not_kept_is_named_without_its_lines(shown: Shown) -> None:
    unkept = FileState("file", 0o644, "", 9)
    assert shown.describe(unkept, ABSENT) == ["remove     a.txt"]


def test_an_empty_file_has_no_lines(shown: Shown) -> None:
    empty, one = shown.keep(b""), shown.keep(b"\n")
    assert shown.describe(empty, one)[3:] == ["  @@ -0,0 +1 @@  (hunk 1)", "  +"]
    assert shown.describe(one, empty)[3:] == ["  @@ -1 +0,0 @@  (hunk 1)", "  -"]
    assert shown.describe(ABSENT, empty) == ["bring back a.txt"]


def test_a_link_is_shown_with_its_target(shown: Shown) -> None:
    link = FileState("symlink", digest=shown.store.put(b"b.txt"))
    assert shown.describe(ABSENT, link)[4:] == ["  +b.txt", "  +\\ No newline at end of file"]


def test_a_diff_is_shown_up_to_a_number_of_lines_and_bytes(shown: Shown) -> None:
    # The names and the first mark of a hunk are lines, too.
    for removed, cut in ((397, False), (398, True)):
        old = b"".join(b"%d\n" % number for number in range(removed))
        lines = shown.describe(shown.keep(old), ABSENT)
        assert (lines[-1] == "  …", len(lines)) == (cut, 401 + cut)
    line = b"x" * 1023 + b"\n"
    whole, larger = shown.keep(line * 1024), shown.keep(line * 1024 + b"\n")
    assert shown.describe(whole, ABSENT)[1] != "  (too large to show)"
    assert shown.describe(larger, ABSENT)[1:] == ["  (too large to show)"]


def test_without_diffs_there_is_one_line_for_each_path(shown: Shown) -> None:
    files = tuple(
        FilePlan(path=name, current=shown.keep(b"x"), target=ABSENT) for name in ("a", "b")
    )
    plan = Plan(action="redo", turn=1, events=(), files=files)
    assert list(describe_plan(plan, shown.history, diffs=False)) == ["remove     a", "remove     b"]
    assert list(summarise_plan(plan, preview=False)) == ["redo of turn 1: 2 paths changed."]
