"""The live rows of the terminal fit its window."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.host.parts import Markdown, Notice, Part, ToolInvocation, UserPrompt
from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.transcript import Transcript
from trimtab.transports.tui.view import (
    EditorView,
    Menu,
    MenuItem,
    Scene,
    lay_out,
    lay_out_editor,
)

WIDE = "漢字かな한글🙂é\u0301\t"


TEXTS = st.text(
    alphabet=string.ascii_letters + string.digits + " .,-`*_[]()#>|~" + WIDE, max_size=300
)


WORDS = st.text(alphabet="abcdefgh 漢🙂.", max_size=200)


PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: UserPrompt(key="p", text=text), WORDS),
        st.builds(
            lambda text, key, done: Markdown(key=key, text=text, delta=text, done=done),
            WORDS,
            st.sampled_from(["m1", "m2", "m3"]),
            st.booleans(),
        ),
        st.builds(lambda text: Notice(key="n", level="warning", text=text), WORDS),
        st.builds(
            lambda text, key, state: ToolInvocation(
                key=key, call_id=key, name="bash", title=f"bash {text}", state=state, output=text
            ),
            WORDS,
            st.sampled_from(["c1", "c2"]),
            st.sampled_from(["running", "completed", "failed", "rejected"]),
        ),
    ),
    max_size=12,
)


SIZES = st.tuples(st.integers(8, 120), st.integers(2, 50))


@settings(max_examples=150)
@given(PARTS, SIZES, TEXTS, st.integers(0, 300), st.booleans())
def test_the_live_rows_fit_the_window_and_the_caret_is_in_them(
    parts: list[Part], size: tuple[int, int], text: str, caret: int, asking: bool
) -> None:
    transcript = Transcript()
    for part in parts:
        transcript.apply(part, 1.0)
    columns, rows = size
    items = tuple(MenuItem(f"choice {number}", "remark") for number in range(5))
    scene = Scene(
        columns=columns,
        rows=rows,
        editor=EditorView(text, min(caret, len(text))),
        heading=((("bold", "A question?"),),) if asking else (),
        choices=Menu(items) if asking else None,
        activity="Working",
        status=(("dim", "model · mode · 34 % of 200k · main"),),
        now=5.0,
    )
    frame = lay_out(transcript, scene)
    assert 1 <= len(frame.rows) <= max(1, rows - 1)
    assert 0 <= frame.caret[0] < len(frame.rows)
    assert 0 <= frame.caret[1] < columns


def test_a_huge_draft_is_laid_out_around_the_caret_only() -> None:
    text = "\n".join(f"row {number}" for number in range(100_000))
    for caret in (0, len(text) // 2, len(text)):
        rows, (row, _) = lay_out_editor(EditorView(text, caret), 80, 8)
        assert len(rows) == 8
        line = text.count("\n", 0, caret)
        assert plain(rows[row]).strip("› ") == f"row {line}"


def test_a_line_of_a_million_characters_keeps_its_rows_while_the_caret_moves() -> None:
    text = "".join(chr(97 + number % 26) for number in range(1_000_000))
    rows, (row, _) = lay_out_editor(EditorView(text, 500_000), 80, 8)
    after, (later, _) = lay_out_editor(EditorView(text, 500_001), 80, 8)
    assert plain(rows[row]) == plain(after[later])


def _ask(choices: int, columns: int, rows: int, *, asks: bool = True) -> list[str]:
    """Return the live rows with a question or panel of so many choices."""
    items = tuple(MenuItem(f"choice {number}") for number in range(choices))
    scene = Scene(
        columns=columns,
        rows=rows,
        heading=((("bold", "The title"),), (("", "the body"),)),
        choices=Menu(items),
        asks=asks,
        status=(("dim", "status"),),
    )
    return [plain(line) for line in lay_out(Transcript(), scene).rows]


def test_every_choice_of_a_question_is_visible_in_a_low_window() -> None:
    for rows, choices in ((12, 7), (12, 9), (8, 5), (24, 20)):
        shown = _ask(choices, 40, rows)
        assert len(shown) < rows
        assert [row for row in shown if "choice" in row] == [
            f"  choice {number}" for number in range(choices)
        ]
        assert "The title" in shown


def test_choices_that_have_no_room_are_counted_with_the_keys_that_reach_them() -> None:
    shown = _ask(20, 40, 12)
    visible = sum("choice" in row for row in shown)
    assert 5 <= visible < 20
    assert f"  … {20 - visible} more: Up, Down" in shown
    assert "The title" in shown


def test_a_panel_takes_half_of_the_window_and_keeps_the_title_with_its_keys() -> None:
    shown = _ask(50, 80, 24, asks=False)
    assert len(shown) <= 13
    assert "The title" in shown
