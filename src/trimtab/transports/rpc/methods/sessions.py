"""Stored sessions: listing, copying, sizes, deletion."""

import os
import time
from datetime import datetime
from typing import Any, Literal

import msgspec

from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.session_list import list_sessions as list_shown
from trimtab.session.archive import Cut
from trimtab.transports.rpc import open as opening
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.listing import Filter, describe_session, list_sessions
from trimtab.transports.rpc.protocol import FAILED, RpcError, Then
from trimtab.transports.rpc.setup import SessionSettings

methods = Methods()


class Fork(msgspec.Struct, rename="camel"):
    to_event_id: str | None = None
    name: str | None = None


class List(msgspec.Struct):
    filter: Filter | None = None


class Ids(msgspec.Struct, rename="camel"):
    session_ids: tuple[str, ...]


class Prefix(msgspec.Struct):
    prefix: str


class Context(msgspec.Struct):
    context: Filter | None = None


@methods.on("sessions.fork", Fork)
async def fork(call: Call, params: Fork) -> JsonObject:
    """Copy a session, up to an event or as a whole."""
    archive, source = call.server.archive, call.session_id or ""
    cut = Cut()
    if params.to_event_id is not None:
        cut = Cut(event=archive.event_before(source, params.to_event_id))
    folder = archive.fork(source, cut, name=params.name)
    call.server.tell("created", folder.id, call.server.times(folder.id))
    return {"sessionId": folder.id, **({"name": params.name} if params.name else {})}


@methods.on("sessions.list", List)
async def list_all(call: Call, params: List) -> JsonObject:
    return {"sessions": list_sessions(call.server, params.filter)}


@methods.on("sessions.getMetadata")
async def get_metadata(call: Call, params: Nothing) -> JsonObject:
    server, session_id = call.server, call.session_id or ""
    if not server.runtime.store.exists(session_id):
        return {}
    return {"session": describe_session(server.archive.summary(session_id))}


@methods.on("sessions.checkInUse", Ids)
async def check_in_use(call: Call, params: Ids) -> JsonObject:
    store, archive = call.server.runtime.store, call.server.archive
    known = [session_id for session_id in params.session_ids if store.exists(session_id)]
    return {"inUse": [session_id for session_id in known if archive.summary(session_id).in_use]}


@methods.on("sessions.findByPrefix", Prefix)
async def find_by_prefix(call: Call, params: Prefix) -> JsonObject:
    try:
        return {"sessionId": call.server.runtime.store.find(params.prefix)}
    except TrimtabError:
        return {}


@methods.on("sessions.getLastForContext", Context)
async def get_last_for_context(call: Call, params: Context) -> JsonObject:
    found = list_sessions(call.server, params.context)
    return {"sessionId": found[0]["sessionId"]} if found else {}


@methods.on("sessions.getSizes")
async def get_sizes(call: Call, params: Nothing) -> JsonObject:
    return {"sizes": {summary.id: _size(summary.path) for summary in call.server.archive.list()}}


@methods.on("sessions.getEventFilePath")
async def get_event_file(call: Call, params: Nothing) -> JsonObject:
    return {"filePath": call.server.archive.folder(call.session_id or "").events}


@methods.on("sessions.bulkDelete", Ids)
async def bulk_delete(call: Call, params: Ids) -> JsonObject:
    """Delete sessions. Open ones are closed first; unknown ids are ignored."""
    server = call.server
    freed: dict[str, int] = {}
    for session_id in params.session_ids:
        if server.runtime.store.exists(session_id):
            await server.close_session(session_id)
            size = _size(server.archive.folder(session_id).path)
            server.archive.delete(session_id)
            server.tell("deleted", session_id)
            freed[session_id] = size
    return {"freedBytes": freed}


@methods.on("sessions.close")
async def close(call: Call, params: Nothing) -> JsonObject:
    await call.server.close_session(call.session_id or "")
    return {}


@methods.on("sessions.save")
async def save(call: Call, params: Nothing) -> JsonObject:
    """Wait until all events are on disk."""
    await call.session.live.synced()
    return {}


def _size(path: str) -> int:
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # deleted meanwhile
                continue
    return total


class TaskId(msgspec.Struct, rename="camel"):
    task_id: str


class OpenOptions(SessionSettings, frozen=True, kw_only=True, rename="camel"):
    """The options of `session.create`, two of them by other names."""

    enable_streaming: bool = False
    model_capabilities_overrides: JsonObject | None = None

    def settings(self, **changes: Any) -> "OpenOptions":
        return msgspec.structs.replace(
            self,
            streaming=self.streaming or self.enable_streaming,
            model_capabilities=self.model_capabilities or self.model_capabilities_overrides,
            **changes,
        )


class Opening(msgspec.Struct):
    kind: Literal["create", "resume", "resumeLast", "attach", "remote", "cloud", "handoff"]
    context: Filter | None = None
    options: OpenOptions = OpenOptions()


class Enrich(msgspec.Struct):
    sessions: tuple[JsonObject, ...]


class Prune(msgspec.Struct, rename="camel"):
    older_than_days: float
    dry_run: bool = False
    include_named: bool = False
    exclude_session_ids: tuple[str, ...] = ()


class Plugins(msgspec.Struct):
    plugins: tuple[JsonObject, ...] = ()


class Values(msgspec.Struct):
    values: tuple[str, ...]


@methods.on("sessions.findByTaskId", TaskId)
async def find_by_task(call: Call, params: TaskId) -> JsonObject:
    """Return nothing: tasks belong to GitHub's service."""
    return {}


@methods.on("sessions.connect")
async def connect(call: Call, params: Nothing) -> JsonObject:
    raise UsageError(
        f"There is no remote session {call.session_id!r}; use session.resume for local sessions."
    )


@methods.on("sessions.open", Opening)
async def open_session(call: Call, params: Opening) -> Then:
    """Create a session, or resume the one that is named or was used last."""
    server, session_id = call.server, call.session_id or ""
    if params.kind in ("remote", "cloud", "handoff"):
        raise UsageError(
            f"A {params.kind} session needs GitHub's service; create or resume a local session."
        )
    if params.kind == "create":
        return _opened(
            "created", await opening.create(server, call.peer, params.options.settings())
        )
    if params.kind == "resumeLast":
        found = list_sessions(server, params.context)
        session_id = found[0]["sessionId"] if found else ""
    known = session_id in server.sessions
    if not known and (params.kind == "attach" or not server.runtime.store.exists(session_id)):
        return Then({"status": "not_found"}, lambda: None)
    settings = params.options.settings(session_id=session_id)
    return _opened("resumed", await opening.resume(server, call.peer, settings))


def _opened(status: str, opened: Then) -> Then:
    session_id = opened.result["sessionId"]
    reply = {"status": status, "sessionId": session_id, "startupPrompts": []}
    return Then(reply, opened.after)


@methods.on("sessions.delete")
async def delete(call: Call, params: Nothing) -> JsonObject:
    """Delete one session; it is closed first."""
    server, session_id = call.server, call.session_id or ""
    if not server.runtime.store.exists(session_id):
        raise RpcError(FAILED, f"Session file not found for {session_id}")
    await server.close_session(session_id)
    server.archive.delete(session_id)
    server.tell("deleted", session_id)
    return {}


class Limit(msgspec.Struct):
    limit: int | None = None


@methods.on("sessions.listNonEmptySessionIds", Limit)
async def list_used(call: Call, params: Limit) -> JsonObject:
    """List the sessions in which somebody has said something, the last used first."""
    used = [summary.id for summary in list_shown(call.server.archive.home) if summary.title]
    return {"sessionIds": used[: params.limit]}


@methods.on("sessions.getPersistedRemoteSteerable")
async def get_steerable(call: Call, params: Nothing) -> JsonObject:
    """Return nothing: remote control is off."""
    return {}


@methods.on("sessions.getBoardEntryCount")
async def count_board_entries(call: Call, params: Nothing) -> JsonObject:
    """Return nothing: sessions have no board."""
    return {}


@methods.on("sessions.enrichMetadata", Enrich)
async def enrich(call: Call, params: Enrich) -> JsonObject:
    """Return the entries, completed with what this machine stores about them."""
    store, archive = call.server.runtime.store, call.server.archive
    enriched = []
    for entry in params.sessions:
        session_id = str(entry.get("sessionId", ""))
        known = describe_session(archive.summary(session_id)) if store.exists(session_id) else {}
        enriched.append({**entry, **known})
    return {"sessions": enriched}


@methods.on("sessions.releaseLock")
async def release_lock(call: Call, params: Nothing) -> JsonObject:
    """Do nothing: closing a session releases its lock."""
    return {}


@methods.on("sessions.reloadPluginHooks")
async def reload_hooks(call: Call, params: Nothing) -> JsonObject:
    """Do nothing: a session keeps its hooks, and a warning reports changes to them."""
    return {}


@methods.on("sessions.loadDeferredRepoHooks")
async def load_deferred_hooks(call: Call, params: Nothing) -> JsonObject:
    """Return nothing: the hooks of a trusted folder are loaded with the session."""
    return {"hookCount": 0, "startupPrompts": []}


@methods.on("sessions.setAdditionalPlugins", Plugins)
async def set_additional_plugins(call: Call, params: Plugins) -> JsonObject:
    if params.plugins:
        raise UsageError("Plugins are installed with plugins.install; this list must be empty.")
    return {}


@methods.on("sessions.pruneOld", Prune)
async def prune(call: Call, params: Prune) -> JsonObject:
    """Move sessions that were not used for so many days to the trash, except named ones."""
    archive = call.server.archive
    before = time.time() - params.older_than_days * 86_400
    result: JsonObject = {"deleted": [], "candidates": [], "skipped": [], "freedBytes": 0}
    for summary in archive.list():
        if summary.id in params.exclude_session_ids or is_newer(summary.updated_at, before):
            continue
        if (summary.name and not params.include_named) or summary.in_use:
            result["skipped"].append(summary.id)
        elif params.dry_run:
            result["candidates"].append(summary.id)
        else:
            result["freedBytes"] += _size(summary.path)
            archive.delete(summary.id)
            call.server.tell("deleted", summary.id)
            result["deleted"].append(summary.id)
    return {**result, "dryRun": params.dry_run}


@methods.on("secrets.addFilterValues", Values)
async def add_secrets(call: Call, params: Values) -> JsonObject:
    """Hide values in all sessions of this server."""
    call.server.hide(params.values)
    return {"ok": True}


def is_newer(moment: str, than: float) -> bool:
    """Return True if an ISO time is after a Unix time, or cannot be parsed."""
    try:
        return datetime.fromisoformat(moment).timestamp() > than
    except ValueError:
        return True
