"""Colours of code."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.transports.tui.cells import plain
from trimtab.transports.tui.highlight import Highlighter


@given(st.lists(st.text(alphabet="abc \"'#(){}:\\=\t漢", max_size=60), max_size=8))
def test_colouring_never_changes_the_code(lines: list[str]) -> None:
    for language in ("python", "js", "bash", "json", "html", "unknown"):
        highlighter = Highlighter(language)
        assert [plain(highlighter.colour(line)) for line in lines] == lines
