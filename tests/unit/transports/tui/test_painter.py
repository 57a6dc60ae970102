"""The bytes of a frame: finished lines once, live rows at the end, nothing twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.transports.tui.cells import clip, plain
from trimtab.transports.tui.painter import Frame, Painter
from trimtab.transports.tui.theme import DARK
from tuikit import Emulator

WORDS = st.text(alphabet="abcdefgh 漢🙂.", max_size=200)


def letters(text: str) -> str:
    """What must survive rendering whatever is done to spaces and markup."""
    return "".join(character for character in text if character.isalnum())


ROWS = st.lists(WORDS.map(lambda text: (("", text),)), min_size=1, max_size=6).map(tuple)


FRAMES = st.lists(
    st.tuples(
        st.lists(st.text(alphabet="abc 漢", max_size=60), max_size=4), ROWS, st.integers(0, 5)
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(FRAMES, st.integers(20, 60))
def test_finished_lines_stand_in_the_scrollback_once_and_live_rows_only_at_the_end(
    frames: list[tuple[list[str], tuple[tuple[tuple[str, str]]], int]], columns: int
) -> None:
    painter, emulator = Painter(DARK), Emulator(columns, 10)
    written: list[str] = []
    for number, (finished, rows, caret) in enumerate(frames):
        lines = [f"{number}.{index}:{text}" for index, text in enumerate(finished)]
        written += lines
        frame = Frame(rows, (caret % len(rows), 0))
        emulator.feed(painter.paint([(("", line),) for line in lines], frame, columns).encode())
        cursor = emulator.screen.cursor
        shown = [*emulator.scrolled, *emulator.visible]
        live = [plain(clip(row, columns - 1)).rstrip() for row in rows]
        at = len(emulator.scrolled) + cursor.y - frame.caret[0]
        assert shown[at : at + len(rows)] == live
        assert not "".join(shown[at + len(rows) :])
        assert letters("".join(shown[:at])) == letters("".join(written))


def test_an_unchanged_frame_sends_nothing() -> None:
    painter = Painter(DARK)
    frame = Frame(((("", "row"),),), (0, 1))
    assert painter.paint([], frame, 80)
    assert painter.paint([], frame, 80) == ""


def test_a_narrower_window_never_costs_a_finished_line() -> None:
    painter, emulator = Painter(DARK), Emulator(60, 10)
    frame = Frame(((("", "x" * 50),), (("", "› "),)), (1, 2))
    emulator.feed(painter.paint([(("", f"line {n}"),) for n in range(4)], frame, 60).encode())
    emulator.screen.resize(10, 30)
    emulator.feed(painter.paint([(("", "line 4"),)], frame, 30).encode())
    for number in range(5):
        assert emulator.text.split("\n").count(f"line {number}") == 1


def test_rows_that_a_lower_window_cut_off_are_painted_again() -> None:
    painter, emulator = Painter(DARK), Emulator(60, 10)
    frame = Frame(((("", "editor"),), (("dim", "status"),)), (0, 0))
    emulator.feed(painter.paint([], frame, 60, 10).encode())
    emulator.feed(b"\x1b7\r\n\x1b[K\x1b8")  # tmux removes rows below the cursor
    assert "status" not in emulator.text
    emulator.feed(painter.paint([], frame, 60, 9).encode())
    assert emulator.visible[:2] == ["editor", "status"]
    assert painter.paint([], frame, 60, 9) == ""
