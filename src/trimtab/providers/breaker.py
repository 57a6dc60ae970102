"""A circuit breaker per service: sessions side by side do not hammer one that is in trouble."""

import time

FAILURES = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
"""Categories of errors that say something about the service rather than about the request."""

_THRESHOLD = 5
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 15.0
_FULL_STRENGTH = 32

MAX_RETRY_AFTER = 300.0
"""The longest pause in seconds that a service may ask for."""


class Breaker:
    """Opens after some failures in a row; then one call tries, and success lets others follow.

    While it recovers, the number of calls at once doubles with each success, so that a service
    that comes back is not knocked over by everybody who waited.
    """

    def __init__(self, threshold: int = _THRESHOLD, pause: float = _FIRST_PAUSE) -> None:
        self._threshold = threshold
        self._pause = pause
        self._failures = 0
        self._trips = 0
        self._until = 0.0
        self._allowed = _FULL_STRENGTH
        self._running = 0

    @property
    def open(self) -> bool:
        """Whether calls are held back."""
        return self._trips > 0

    def enter(self) -> float:
        """Ask to make a call: 0 means go, and `leave` must follow; else seconds to wait first."""
        if not self.open:
            return 0.0
        left = self._until - time.monotonic()
        if left > 0:
            return left
        if self._running >= self._allowed:
            return self._pause
        self._running += 1
        return 0.0

    @property
    def ticket(self) -> int:
        """To be taken after `enter` and given to `leave`: failures of calls made before the
        breaker opened are not held against the service a second time."""
        return self._trips

    def leave(self, ticket: int, ok: bool | None, retry_after: float = 0.0) -> None:
        """A call is over: it went well, it failed, or (None) nothing was learned from it."""
        current = ticket == self._trips
        if ticket and self._running:
            self._running -= 1
        if ok is None or not current:
            return
        if ok:
            self._failures = 0
            self._recover()
            return
        self._failures += 1
        if self.open or self._failures >= self._threshold:
            self._trip(retry_after)

    def _recover(self) -> None:
        if not self.open:
            return
        self._allowed *= 2
        if self._allowed >= _FULL_STRENGTH:
            self._trips = 0
            self._running = 0

    def _trip(self, retry_after: float) -> None:
        pause = min(_LONGEST_PAUSE, self._pause * (1 << min(self._trips, 10)))
        import random

        pause *= random.uniform(0.75, 1.25)
        self._trips += 1
        self._failures = 0
        self._allowed = 1
        self._until = time.monotonic() + max(pause, min(retry_after, MAX_RETRY_AFTER))


_breakers: dict[str, Breaker] = {}


def breaker_for(origin: str) -> Breaker:
    """The one breaker of an origin in this process."""
    return _breakers.setdefault(origin, Breaker())
