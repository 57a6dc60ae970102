"""Events as the model saw them, where the log hides a secret: for the owner of the session alone.

A model that is resumed must read what it read before, and the log and everybody who is given it
must not. So an event in which something was hidden that the model saw is kept whole in a file of
its own, which is never exported, mirrored or sent.
"""

import os
from collections.abc import Collection, Iterator

from trimtab.config.files import cannot, write_all
from trimtab.contracts.events.codec import decode, encode
from trimtab.contracts.events.envelope import Event
from trimtab.session.record import whole
from trimtab.session.records import read_records

NAME = "unmasked.jsonl"


def keep_unmasked(log: str, event: Event) -> None:
    """Keep an event as the model saw it. Raises `TrimtabError`."""
    path = path_for(log)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
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
    """The kept events by id; a line that a crash cut off is passed over."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return {}
    records = [record for line in lines if (record := whole(line, 0)) is not None]
    return {record.id: record.line for record in records if record.id}
