"""Instructions get half of a window, whatever they say."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.prompts.instructions import CUT, INSTRUCTIONS_SHARE, fit_instructions


@given(st.lists(st.integers(0, 3000), max_size=8), st.integers(1, 2000))
def test_only_the_longest_are_cut_and_only_when_they_must_be(sizes: list[int], window: int) -> None:
    texts = ["x" * size for size in sizes]
    room = window * 4 // INSTRUCTIONS_SHARE
    fitted = [text.removesuffix(f"\n{CUT}") for text in fit_instructions(texts, window)]
    assert sum(map(len, fitted)) <= max(room, 0)
    cut = [len(b) for a, b in zip(texts, fitted, strict=True) if a != b]
    if sum(sizes) <= room:
        assert not cut
    else:
        assert len(set(cut)) == 1
        assert max(map(len, fitted)) == cut[0]
        assert sum(map(len, fitted)) > room - len(texts), "no room is wasted"
