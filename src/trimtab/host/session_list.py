"""The sessions that a front end offers to continue."""

from trimtab.config.host_settings import is_enabled
from trimtab.config.paths import Home
from trimtab.config.settings import Settings
from trimtab.session.store import CLIENT, SessionStore
from trimtab.session.summary import SessionSummary


def list_sessions(home: Home) -> list[SessionSummary]:
    """Return the sessions, the one used last first; only our own if the person wants that."""
    summaries = SessionStore(home).list()
    if is_enabled(Settings(home), "showExternalSessions"):
        return summaries
    return [summary for summary in summaries if summary.client == CLIENT]
