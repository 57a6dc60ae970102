"""Properties of the pure parts: any text, width and order of events."""

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trimtab.contracts.text import neutralise
from trimtab.host.parts import Markdown, Notice, Part, ToolInvocation, UserPrompt
from trimtab.transports.tui.cells import clip, line_width, plain, wrap
from trimtab.transports.tui.highlight import Highlighter
from trimtab.transports.tui.markdown import MarkdownStream
from trimtab.transports.tui.painter import Frame, Painter
from trimtab.transports.tui.theme import DARK, NONE, encode
from trimtab.transports.tui.transcript import Transcript
from trimtab.transports.tui.view import EditorView, Menu, MenuItem, Scene, lay_out
from tuikit import Emulator

WIDE = "漢字かな한글🙂é\u0301\t"
TEXTS = st.text(
    alphabet=string.ascii_letters + string.digits + " .,-`*_[]()#>|~" + WIDE, max_size=300
)
LINES = st.lists(TEXTS, max_size=12).map("\n".join)
WIDTHS = st.integers(min_value=8, max_value=120)
WORDS = st.text(alphabet="abcdefgh 漢🙂.", max_size=200)


def letters(text: str) -> str:
    """What must survive rendering whatever is done to spaces and markup."""
    return "".join(character for character in text if character.isalnum())


@given(TEXTS, WIDTHS)
def test_a_wrapped_row_is_never_too_wide_and_no_letter_is_lost(text: str, limit: int) -> None:
    rows = wrap((("", text),), limit, "  ")
    assert all(line_width(row) <= limit for row in rows)
    assert letters("".join(plain(row) for row in rows)) == letters(text)


@given(TEXTS, st.integers(min_value=0, max_value=100))
def test_a_clipped_row_is_never_too_wide(text: str, limit: int) -> None:
    assert line_width(clip((("bold", text[:9]), ("", text[9:])), limit)) <= max(0, limit)


def render(text: str, columns: int, cuts: list[int]) -> list[str]:
    """Render a message that arrives in pieces, taking what is certain after each piece."""
    stream, lines, at = MarkdownStream(), [], 0
    for cut in [*sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]:
        stream.feed(text[at:cut])
        at = cut
        lines += stream.take(columns)
    stream.end()
    lines += stream.take(columns)
    assert not stream.tail(columns)
    return [plain(line) for line in lines]


@settings(max_examples=200)
@given(
    st.lists(WORDS, max_size=10).map("\n".join), WIDTHS, st.lists(st.integers(0, 2000), max_size=20)
)
@example("a " * 200, 20, [7, 30, 31, 32, 90])
@example("\n" + "a" * 16 + "  \n", 8, [19])
def test_prose_gives_the_same_rows_however_it_is_cut(
    text: str, columns: int, cuts: list[int]
) -> None:
    assert render(text, columns, cuts) == render(text, columns, [])


@settings(max_examples=200)
@given(LINES, WIDTHS, st.lists(st.integers(0, 4000), max_size=20))
def test_no_letter_of_a_message_is_lost_or_doubled(
    text: str, columns: int, cuts: list[int]
) -> None:
    text = text.replace("[", "(").replace("~~~", "~").replace("```", "`")
    assert letters("".join(render(text, columns, cuts))) == letters(text)


@given(st.lists(st.text(alphabet="abc \"'#(){}:\\=\t漢", max_size=60), max_size=8))
def test_colouring_never_changes_the_code(lines: list[str]) -> None:
    for language in ("python", "js", "bash", "json", "html", "unknown"):
        highlighter = Highlighter(language)
        assert [plain(highlighter.colour(line)) for line in lines] == lines


def test_code_is_written_as_it_stands_and_a_docstring_keeps_its_colour() -> None:
    code = '```python\ndef f():\n    """one\n    two"""\n    return 1\n```\n'
    stream = MarkdownStream()
    stream.feed(code)
    lines = stream.take(20)
    assert [plain(line) for line in lines[1:]] == [
        "  def f():",
        '      """one',
        '      two"""',
        "      return 1",
    ]
    assert ("string", '    two"""') in lines[3]


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


def test_escape_sequences_of_a_model_are_not_sent_to_the_terminal() -> None:
    transcript = Transcript()
    hostile = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md"
    transcript.apply(Markdown(key="m", text=hostile, delta=hostile, done=True))
    transcript.apply(UserPrompt(key="p", text=hostile))
    text = "".join(plain(line) for line in transcript.take(80))
    assert not [
        character for character in text if ord(character) < 32 or 127 <= ord(character) < 160
    ]
    assert neutralise(hostile) in text


def show(text: str, columns: int = 60) -> str:
    """A message as it is sent to a terminal."""
    stream = MarkdownStream()
    stream.feed(text)
    stream.end()
    return "\n".join(encode(line, NONE) for line in stream.take(columns))


def test_links_are_links_of_the_terminal_and_show_where_they_lead() -> None:
    sent = show("See [the guide](https://example.com/a?b=1) now.")
    assert "\x1b]8;;https://example.com/a?b=1\x1b\\the guide\x1b]8;;\x1b\\" in sent
    assert "(https://example.com/a?b=1)" in sent


def test_an_address_in_prose_stays_one_link_when_it_wraps() -> None:
    address = "https://example.com/" + "x" * 50
    sent = show(f"It is at {address}.", 30)
    assert sent.count(f"\x1b]8;;{address}\x1b\\") == 3
    assert f"\x1b]8;;{address}.\x1b" not in sent


@pytest.mark.parametrize("target", ["javascript:alert(1)", "file:///etc/passwd", "x\x1b]0;y"])
def test_only_pages_and_mail_are_links_of_the_terminal(target: str) -> None:
    assert "\x1b]8;;" not in show(neutralise(f"[here]({target})"))
