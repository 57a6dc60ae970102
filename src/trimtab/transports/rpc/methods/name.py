"""The name of a session."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionTitleChanged
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()
MAX_LENGTH = 100


class SetName(msgspec.Struct):
    name: str


class SetAuto(msgspec.Struct):
    summary: str


@methods.on("session.name.get")
async def get_name(call: Call, params: Nothing) -> JsonObject:
    live = call.session.live
    name = live.folder.read_metadata().get("name") or live.projections.title.text
    return {"name": name or None}


@methods.on("session.name.set", SetName)
async def set_name(call: Call, params: SetName) -> None:
    check_name(params.name)
    _rename(call, params.name, by_user=True)


@methods.on("session.name.setAuto", SetAuto)
async def set_auto_name(call: Call, params: SetAuto) -> JsonObject:
    """Set a generated name, unless a person has named the session."""
    if call.session.live.folder.read_metadata().get("user_named"):
        return {"applied": False}
    name = " ".join(params.summary.split())[:MAX_LENGTH]
    if name:
        _rename(call, name, by_user=False)
    return {"applied": bool(name)}


def check_name(name: str) -> None:
    if not name.strip():
        raise UsageError("Session name cannot be empty; choose one.")
    if name != name.strip() or len(name) > MAX_LENGTH or not name.isprintable():
        raise UsageError(
            f"A name has 1 to {MAX_LENGTH} printable characters and no spaces around it; choose "
            "another."
        )


def _rename(call: Call, name: str, *, by_user: bool) -> None:
    live = call.session.live
    live.folder.update_metadata(name=name, user_named=by_user)
    live.emit(SessionTitleChanged(title=name))
    call.server.tell("updated", live.id, {**call.server.times(live.id), "summary": name})
