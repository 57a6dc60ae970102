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


def list_resumable(home: Home, own: str) -> list[SessionSummary]:
    """Return the other sessions that a person can continue: nobody spoke in those without a title.

    `own` is the id of the session they are in.
    """
    return [
        summary
        for summary in list_sessions(home)
        if summary.id != own and not summary.problem and (summary.name or summary.title)
    ]
