"""Stored sessions: lists, copies, sizes, deletion."""

import os

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.runtime.archive import Cut
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.listing import Filter, describe_session, list_sessions

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
    """A copy that ends before an event, or a whole one."""
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
    return {"sizes": {one.id: _size(one.path) for one in call.server.archive.list()}}


@methods.on("sessions.getEventFilePath")
async def get_event_file(call: Call, params: Nothing) -> JsonObject:
    return {"filePath": call.server.archive.folder(call.session_id or "").events}


@methods.on("sessions.bulkDelete", Ids)
async def bulk_delete(call: Call, params: Ids) -> JsonObject:
    """Sessions that are open here are closed first; unknown ids are left out of the answer."""
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
    """Waits until everything that happened is on the disk."""
    await call.session.live.synced()
    return {}


def _size(path: str) -> int:
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # gone in the meantime
                continue
    return total
