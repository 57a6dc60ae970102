"""The deadline of a session: how much time is left, and how much of it is for last words."""

import time
from collections.abc import Callable

MIN_LAST_WORDS, MAX_LAST_WORDS = 2.0, 60.0


class TimeLimit:
    """The time from now on that a session may take."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end; 0 or less once it is reached."""
        return self._end - self._clock()

    @property
    def share_left(self) -> float:
        """The share of the time that is left, from 1 down to 0."""
        return max(0.0, self.left / self.seconds) if self.seconds else 0.0

    @property
    def last_words(self) -> float:
        """Seconds at the end in which no tool runs: a tenth, at least 2 and at most 60.

        Of a very short time it is half, so that some is left for work.
        """
        return min(max(self.seconds / 10, MIN_LAST_WORDS), MAX_LAST_WORDS, self.seconds / 2)
