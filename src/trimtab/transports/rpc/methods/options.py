"""Changes the options and the mode of a running session."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Mode
from trimtab.transports.rpc.changes import Changes, apply_changes
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


@methods.on("session.options.update", Changes)
async def update(call: Call, params: Changes) -> JsonObject:
    """Change the options that have an effect; others are ignored."""
    await apply_changes(call.session, params)
    return {"success": True}


class SetMode(msgspec.Struct):
    mode: Mode


@methods.on("session.mode.get")
async def get_mode(call: Call, params: Nothing) -> str:
    return call.session.live.mode


@methods.on("session.mode.set", SetMode)
async def set_mode(call: Call, params: SetMode) -> JsonObject:
    call.session.live.controls.set_mode(params.mode)
    return {"modelChanged": False, "status": "applied", "modeApplied": True}
