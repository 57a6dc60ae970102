"""The mode an agent works in."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Mode
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class SetMode(msgspec.Struct):
    mode: Mode


@methods.on("session.mode.get")
async def get_mode(call: Call, params: Nothing) -> str:
    return call.session.live.mode


@methods.on("session.mode.set", SetMode)
async def set_mode(call: Call, params: SetMode) -> JsonObject:
    call.session.live.controls.set_mode(params.mode)
    return {"modelChanged": False, "status": "applied", "modeApplied": True}
