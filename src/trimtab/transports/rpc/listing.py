"""Sessions as lists show them."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.session.archive import SessionSummary
from trimtab.transports.rpc.server import Server


class Filter(msgspec.Struct, frozen=True, rename="camel"):
    """Which sessions are wanted; what is not given does not matter."""

    cwd: str | None = None
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None


def list_sessions(server: Server, wanted: Filter | None) -> list[JsonObject]:
    """All sessions that match, the one used last first."""
    described = [describe_session(summary) for summary in server.archive.list()]
    if wanted is None:
        return described
    values = {name: value for name, value in msgspec.to_builtins(wanted).items() if value}
    return [
        session
        for session in described
        if all(session.get("context", {}).get(name) == value for name, value in values.items())
    ]


def describe_session(summary: SessionSummary) -> JsonObject:
    from trimtab.checkout.checkout import find_checkout

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
