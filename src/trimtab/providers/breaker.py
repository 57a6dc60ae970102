"""A circuit breaker for each service, shared by all sessions of the process."""

import time

FAILURES = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
"""Categories of errors that the service causes, not the request."""

_THRESHOLD = 5
_FIRST_PAUSE = 0.25
_MAX_PAUSE = 15.0
_UNLIMITED = 32
"""The number of parallel calls at which the breaker closes again."""

MAX_RETRY_AFTER = 300.0
"""The longest pause in seconds that a service may ask for."""


class Breaker:
    """Opens after several failures in a row; then a single call tests the service.

    While the service recovers, the number of parallel calls doubles with each success, so that
    the callers that waited do not overload it again.
    """

    def __init__(self, threshold: int = _THRESHOLD, pause: float = _FIRST_PAUSE) -> None:
        self._threshold = threshold
        self._pause = pause
        self._failures = 0
        self._trips = 0
        self._until = 0.0
        self._allowed = _UNLIMITED
        self._running = 0

    @property
    def open(self) -> bool:
        """True while calls are delayed."""
        return self._trips > 0

    def enter(self) -> float:
        """Return 0 to permit a call, which `leave` must follow, else the seconds to wait."""
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
        """The value to read after `enter` and pass to `leave`.

        By it `leave` ignores the failures of calls that began before the breaker opened.
        """
        return self._trips

    def leave(self, ticket: int, ok: bool | None, retry_after: float = 0.0) -> None:
        """Record the end of a call; `ok` is None if it says nothing about the service."""
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
        if self._allowed >= _UNLIMITED:
            self._trips = 0
            self._running = 0

    def _trip(self, retry_after: float) -> None:
        pause = min(_MAX_PAUSE, self._pause * (1 << min(self._trips, 10)))
        import random

        pause *= random.uniform(0.75, 1.25)
        self._trips += 1
        self._failures = 0
        self._allowed = 1
        self._until = time.monotonic() + max(pause, min(retry_after, MAX_RETRY_AFTER))


_breakers: dict[str, Breaker] = {}


def breaker_for(origin: str) -> Breaker:
    """Return the breaker of an origin, of which the process has one."""
    return _breakers.setdefault(origin, Breaker())
