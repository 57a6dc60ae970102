"""The time that is left of a limit."""

import pytest

from trimtab.loop.time_limit import TimeLimit


@pytest.mark.parametrize(
    ("seconds", "last_words"), [(1, 0.5), (10, 2), (100, 10), (600, 60), (7200, 60)]
)
def test_a_tenth_of_the_time_is_for_last_words(seconds: float, last_words: float) -> None:
    assert TimeLimit(seconds).last_words == last_words


def test_the_time_that_is_left_is_a_share_of_the_whole() -> None:
    now = [100.0]
    limit = TimeLimit(50, clock=lambda: now[0])
    assert (limit.left, limit.share_left) == (50, 1.0)
    now[0] = 140.0
    assert (limit.left, limit.share_left) == (10, 0.2)
    now[0] = 200.0
    assert (limit.left, limit.share_left) == (-50, 0.0)
