"""Summarizes a session for lists, from `workspace.yaml` and both ends of its log."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.session import LOG_VERSION
from trimtab.contracts.ids import timestamp
from trimtab.session.folder import SessionFolder
from trimtab.session.lease import find_owner
from trimtab.session.metadata import Metadata
from trimtab.session.projections.title import title_of
from trimtab.session.record import parse_record
from trimtab.session.records import last_record
from trimtab.session.repair import check_readable
from trimtab.session.transcript import plain_event

_HEAD = 1 << 17


class SessionSummary(msgspec.Struct, kw_only=True, rename="camel"):
    """A session's entry in a list. `problem` says what is wrong with its folder, if anything."""

    id: str
    path: str
    name: str | None = None
    title: str = ""
    cwd: str | None = None
    branch: str | None = None
    client: str = ""
    """The program that made the session, as it names itself."""
    created_at: str = ""
    updated_at: str = ""
    size: int = 0
    in_use: bool = False
    problem: str | None = None


def summarize(folder: SessionFolder) -> SessionSummary:
    """Summarize a folder. Anything wrong with it is a `problem` of the summary, not an error."""
    summary = SessionSummary(id=folder.id, path=folder.path)
    metadata: Metadata = {}
    try:
        metadata = folder.read_metadata()
    except TrimtabError as error:
        summary.problem = error.message
    _add_metadata(summary, metadata)
    try:
        _add_log(summary, folder)
    except (OSError, TrimtabError) as error:
        summary.problem = f"The event log cannot be read: {error}"
    summary.updated_at = last_used(folder, metadata)
    summary.created_at = summary.created_at or summary.updated_at
    summary.in_use = find_owner(folder.path) is not None
    return summary


def last_used(folder: SessionFolder, metadata: Mapping[str, Any]) -> str:
    """Return the time of the last event or metadata change; else of the files."""
    updated_at = _text(metadata.get("updated_at")) or ""
    try:
        fd = os.open(folder.events, os.O_RDONLY | os.O_NONBLOCK)
        try:
            record = last_record(fd)
            last_event = record.timestamp if record else ""
            return max(last_event, updated_at) or timestamp(os.fstat(fd).st_mtime)
        finally:
            os.close(fd)
    except OSError:
        return updated_at or _folder_time(folder)


def _folder_time(folder: SessionFolder) -> str:
    try:
        return timestamp(os.stat(folder.path).st_mtime)
    except OSError:
        return timestamp(0)


def _add_metadata(summary: SessionSummary, metadata: dict[str, Any]) -> None:
    summary.name = _text(metadata.get("name"))
    summary.title = summary.name or _text(metadata.get("summary")) or ""
    summary.cwd = _text(metadata.get("cwd"))
    summary.branch = _text(metadata.get("branch"))
    summary.client = _text(metadata.get("client_name")) or ""
    summary.created_at = _text(metadata.get("created_at")) or ""


def _add_log(summary: SessionSummary, folder: SessionFolder) -> None:
    check_readable(folder.events)
    with open(folder.events, "rb") as file:
        summary.size = os.fstat(file.fileno()).st_size
        head = file.read(_HEAD)
    complete_lines = head.split(b"\n") if summary.size <= len(head) else head.split(b"\n")[:-1]
    records = [record for line in complete_lines if (record := parse_record(line, 0))]
    if not records and summary.size <= len(head):
        summary.problem = "The event log contains no event: run `trimtab sessions verify` on it."
    for record in records:
        data = plain_event(record.line).get("data")
        if not isinstance(data, dict):
            continue
        if record.type == "session.start":
            _add_start(summary, data)
        elif record.type == "user.message" and record.agent_id is None and not data.get("source"):
            content = data.get("content")
            summary.title = summary.title or (title_of(content) if isinstance(content, str) else "")
            return


def _add_start(summary: SessionSummary, data: Metadata) -> None:
    """Take from the first event what `workspace.yaml` lacks."""
    version = data.get("version")
    if isinstance(version, int | float) and version > LOG_VERSION:
        summary.problem = f"The event log is in version {version:g}: update trimtab to open it."
    context = data.get("context")
    if isinstance(context, dict):
        summary.cwd = summary.cwd or _text(context.get("cwd"))
        summary.branch = summary.branch or _text(context.get("branch"))
    summary.created_at = summary.created_at or _text(data.get("startTime")) or ""


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)
