"""The trash: moves deleted sessions aside, and restores them."""

import os
import time

import msgspec

from trimtab.config.files import cannot, make_private_dir, sync_dir
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError, SessionNotFound
from trimtab.contracts.ids import timestamp
from trimtab.session.folder import SessionFolder, is_safe_name
from trimtab.session.lease import take_lease
from trimtab.session.summary import summarize


class Trashed(msgspec.Struct, rename="camel"):
    """A deleted session. `path` is its folder in the trash."""

    id: str
    path: str
    deleted_at: str
    title: str = ""
    size: int = 0


def delete(home: Home, folder: SessionFolder) -> Trashed:
    """Move a session to the trash. Raises `SessionInUse` if another process uses it."""
    make_private_dir(home.trash)
    deleted_at, target = _choose_target(home, folder.id)
    lease = take_lease(folder.path)
    try:
        os.rename(folder.path, target)
        sync_dir(home.trash)
        sync_dir(os.path.dirname(folder.path))
    except OSError as error:
        raise cannot("move to the trash", folder.path, error) from error
    finally:
        lease.release()
    return Trashed(folder.id, target, deleted_at)


def _choose_target(home: Home, session_id: str) -> tuple[str, str]:
    """Return the time of deletion and a free path named for it.

    The same session may be deleted, restored and deleted again within one millisecond.
    """
    moment = time.time()
    while True:
        deleted_at = timestamp(moment)
        target = os.path.join(home.trash, f"{session_id}@{deleted_at}")
        if not os.path.lexists(target):
            return deleted_at, target
        moment += 0.001


def list_trash(home: Home) -> list[Trashed]:
    """Return the sessions that can be restored, the last deleted first."""
    try:
        names = os.listdir(home.trash)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot("read", home.trash, error) from error
    found = []
    for name in names:
        session_id, mark, deleted_at = name.rpartition("@")
        path = os.path.join(home.trash, name)
        if mark and is_safe_name(session_id) and os.path.isdir(path):
            summary = summarize(SessionFolder(session_id, path))
            found.append(Trashed(session_id, path, deleted_at, summary.title, summary.size))
    return sorted(found, key=lambda entry: entry.deleted_at, reverse=True)


def restore(home: Home, text: str) -> Trashed:
    """Restore the last deleted session whose id is or begins with `text`."""
    found = [entry for entry in list_trash(home) if entry.id == text]
    if not found and len(text) >= 7:
        found = [entry for entry in list_trash(home) if entry.id.startswith(text.lower())]
    if not found:
        raise SessionNotFound(
            f"No such session in the trash: {text!r}; see `trimtab sessions trash`."
        )
    if len({entry.id for entry in found}) > 1:
        raise SessionNotFound(
            f"{text!r} could be any of {', '.join(sorted({entry.id for entry in found}))}: "
            "give the whole id."
        )
    entry = found[0]
    target = os.path.join(home.session_state, entry.id)
    make_private_dir(home.session_state)
    if os.path.lexists(target):
        raise ConfigurationError(
            f"Session {entry.id} exists: delete that session before you restore this one."
        )
    try:
        os.rename(entry.path, target)
        sync_dir(home.session_state)
    except OSError as error:
        raise cannot("restore the session to", target, error) from error
    return msgspec.structs.replace(entry, path=target)
