"""Lists stored sessions, filtered by folder, repository or branch."""

import msgspec

from trimtab.checkout.checkout import find_checkout
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.session_list import list_sessions as list_shown
from trimtab.session.archive import SessionSummary
from trimtab.transports.rpc.server import Server


class Filter(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions on a session's context; those left out match everything."""

    cwd: str | None = None
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None


def list_sessions(server: Server, condition: Filter | None) -> list[JsonObject]:
    """Return the sessions that match, the last used first."""
    described = [describe_session(summary) for summary in list_shown(server.archive.home)]
    if condition is None:
        return described
    values = {name: value for name, value in msgspec.to_builtins(condition).items() if value}
    return [
        session
        for session in described
        if all(session.get("context", {}).get(name) == value for name, value in values.items())
    ]


def describe_session(summary: SessionSummary) -> JsonObject:
    described: JsonObject = {
        "sessionId": summary.id,
        "startTime": summary.created_at,
        "modifiedTime": summary.updated_at,
        "isRemote": False,
    }
    if summary.title:
        described["summary"] = summary.title
    if summary.name:
        described["name"] = summary.name
    if summary.cwd:
        described["context"] = find_checkout(summary.cwd).context()
        if summary.branch:
            described["context"]["branch"] = summary.branch
    return described
