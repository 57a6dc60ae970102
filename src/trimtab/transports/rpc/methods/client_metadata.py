"""Texts that clients keep with sessions, open or stored."""

from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.session.client_metadata import (
    Corrupt,
    UnknownVersion,
    read_client_metadata,
    update_client_metadata,
)
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import FAILED, INVALID_PARAMS, RpcError

methods = Methods()


class Update(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    session_id: str
    clear: bool = False
    remove: tuple[str, ...] = ()
    put: dict[str, str] = msgspec.field(default_factory=dict, name="set")


class Sessions(msgspec.Struct, rename="camel"):
    session_ids: tuple[str, ...]
    keys: tuple[str, ...] | None = None


@methods.on("session.metadata.getClientMetadata")
async def get_metadata(call: Call, params: Nothing) -> dict[str, str]:
    try:
        return read_client_metadata(call.session.live.folder)
    except (Corrupt, UnknownVersion) as error:
        raise RpcError(FAILED, str(error)) from None


@methods.on("session.metadata.updateClientMetadata", Update)
async def update_metadata(call: Call, params: Update) -> dict[str, str]:
    folder = call.session.live.folder
    try:
        return update_client_metadata(
            folder, put=params.put, remove=params.remove, clear=params.clear
        )
    except UsageError as error:
        raise RpcError(INVALID_PARAMS, error.message) from None
    except (Corrupt, UnknownVersion) as error:
        raise RpcError(FAILED, str(error)) from None


@methods.on("sessions.getClientMetadata", Sessions)
async def get_stored_metadata(call: Call, params: Sessions) -> list[JsonObject]:
    """Return the texts of stored sessions in the order in which they are named."""
    return [_read(call, session_id, params.keys) for session_id in params.session_ids]


def _read(call: Call, session_id: str, keys: tuple[str, ...] | None) -> JsonObject:
    about: dict[str, Any] = {"sessionId": session_id}
    if not call.server.runtime.store.exists(session_id):
        return {**about, "status": "notFound"}
    try:
        found = read_client_metadata(call.server.archive.folder(session_id))
    except Corrupt:
        return {**about, "status": "corrupt"}
    except UnknownVersion:
        return {**about, "status": "unsupportedVersion"}
    except OSError as error:
        told = {"code": str(error.errno), "message": str(error.strerror)}
        return {**about, "status": "unavailable", **told}
    shown = found if keys is None else {name: found[name] for name in keys if name in found}
    return {**about, "status": "ok", "metadata": shown}
