"""Cuts a session back: an event and all after it are removed and kept aside."""

import os

from trimtab.config.files import cannot, replace_file
from trimtab.contracts.errors import UsageError
from trimtab.contracts.ids import timestamp
from trimtab.session.log import EventLog
from trimtab.session.records import read_records
from trimtab.session.session import Session, replay


def cut(session: Session, event_id: str) -> int:
    """Remove an event and everything after it; returns how many events.

    The kept part replaces the log in one step; the removed part lies beside it. A crash leaves
    either the old log or the new one.
    """
    path = session.log.path
    records = list(read_records(path))
    index = next((at for at, record in enumerate(records) if record.id == event_id), None)
    if index is None:
        raise UsageError(f"Session {session.id} has no event {event_id!r}; see its events.")
    if index == 0:
        raise UsageError("The first event of a session cannot be removed; delete the session.")
    aside = f"{path}.cut-{timestamp().replace(':', '')}-{os.urandom(2).hex()}"
    session.log.close()
    try:
        replace_file(aside, (record.line + b"\n" for record in records[index:]))
        replace_file(path, (record.line + b"\n" for record in records[:index]))
    except OSError as error:
        raise cannot("cut", os.path.basename(path), error) from error
    finally:
        session.log = EventLog.open(path)
        session.projections = replay(path)
    return len(records) - index
