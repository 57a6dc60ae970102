"""Watching a session that another process writes: its records as they come, read-only."""

import os
import time
from collections.abc import Callable, Iterator

from trimtab.session.record import Record
from trimtab.session.records import read_records

_PAUSE = 0.1


def follow(path: str, *, start: int, goes_on: Callable[[], bool]) -> Iterator[Record]:
    """Records from `start` on, as they are written, until the writer has gone.

    A record counts once its newline is there.
    """
    while True:
        last_round = not goes_on()
        size = os.stat(path).st_size
        start = min(start, size)  # a log that got shorter was mended; what it holds was shown
        for record in read_records(path, start=start):
            end = record.offset + len(record.line) + 1
            if end > size:
                break
            start = end
            yield record
        if last_round:
            return
        time.sleep(_PAUSE)
