"""Keeps events with unmasked secrets, as the model saw them, for the session's owner alone.

A resumed session must show the model what it saw before, but the log and its readers must not see
it. So an event that the log has masked, but not for the model, is kept unmasked in a separate file,
which is never exported, mirrored or sent.
"""

import os
from collections.abc import Collection, Iterator

from trimtab.config.files import cannot, open_private, write_all
from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.envelope import Event
from trimtab.session.record import parse_record
from trimtab.session.records import read_records

NAME = "unmasked.jsonl"


def keep_unmasked(log: str, event: Event) -> None:
    """Keep an event as the model saw it. Raises `TrimtabError`."""
    path = path_for(log)
    try:
        fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            write_all(fd, encode(event) + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise cannot("save the session to", path, error) from error


def read_events(log: str, wanted: Collection[str]) -> Iterator[Event]:
    """Yield the events of some types as the model saw them, in the order of the log."""
    unmasked = _read_unmasked(path_for(log))
    for record in read_records(log):
        if record.type in wanted:
            yield decode(unmasked.get(record.id) or record.line)


def path_for(log: str) -> str:
    return os.path.join(os.path.dirname(log), NAME)


def _read_unmasked(path: str) -> dict[str, bytes]:
    """Return the kept events by id; skip a line that a crash cut off."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return {}
    records = [record for line in lines if (record := parse_record(line, 0)) is not None]
    return {record.id: record.line for record in records if record.id}
