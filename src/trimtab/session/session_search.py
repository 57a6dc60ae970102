"""Brings the index of past sessions up to date for whoever searches it."""

import asyncio
import os
import threading

from trimtab.config.paths import Home

INDEX = "trimtab-session-store.db"
"""`session-store.db` in the same folder is Copilot CLI's, and not ours to write."""


async def prepare_index(home: Home) -> tuple[str, int]:
    """Where the index is, and how many sessions it lacks for want of time. Raises `OSError`."""
    import errno
    import sqlite3

    from trimtab.session.past_sessions import PastSessions
    from trimtab.session.store import SessionStore

    sessions = PastSessions(SessionStore(home), os.path.join(home.state, INDEX))
    stop = threading.Event()
    try:
        missing = await asyncio.to_thread(sessions.refresh, stop.is_set)
    except sqlite3.Error as error:
        raise OSError(errno.EIO, f"the index {sessions.path} fails: {error}") from error
    finally:
        stop.set()  # when cancelled, the thread ends soon
    return sessions.path, missing
