"""Remote control through GitHub's service, which nobody is signed in to here: always off."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionRemoteSteerableChanged
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()

OFF: JsonObject = {"state": "off"}
UNAVAILABLE = (
    "Remote control needs GitHub's service, which this server does not use; connect other clients "
    "to this server with --headless --port instead."
)


@methods.on("sessions.getRemoteControlStatus")
async def get_status(call: Call, params: Nothing) -> JsonObject:
    return {"status": OFF}


class Start(msgspec.Struct, rename="camel"):
    config: JsonObject
    session_id: str


@methods.on("sessions.startRemoteControl", Start)
async def start(call: Call, params: Start) -> JsonObject:
    call.server.session(params.session_id)
    raise UsageError(UNAVAILABLE)


class Stop(msgspec.Struct, rename="camel"):
    expected_session_id: str | None = None
    force: bool = False


@methods.on("sessions.stopRemoteControl", Stop)
async def stop(call: Call, params: Stop) -> JsonObject:
    """Stop nothing. A client that expects a certain session finds another state."""
    if params.expected_session_id is not None and not params.force:
        raise UsageError(
            f"Remote control is not attached to session {params.expected_session_id}; it is off."
        )
    return {"status": OFF, "stopped": False}


class Transfer(msgspec.Struct, rename="camel"):
    to_session_id: str
    expected_from_session_id: str | None = None


@methods.on("sessions.transferRemoteControl", Transfer)
async def transfer(call: Call, params: Transfer) -> JsonObject:
    if params.expected_from_session_id is not None:
        raise UsageError(
            f"Remote control is not attached to session {params.expected_from_session_id}; it is "
            "off."
        )
    return {"status": OFF, "transferred": False}


class Steering(msgspec.Struct):
    enabled: bool


@methods.on("sessions.setRemoteControlSteering", Steering)
async def set_steering(call: Call, params: Steering) -> JsonObject:
    return {"status": OFF}


class Enable(msgspec.Struct):
    mode: str | None = None


@methods.on("session.remote.enable", Enable)
async def enable(call: Call, params: Enable) -> JsonObject:
    if params.mode != "off":
        raise UsageError(UNAVAILABLE)
    return {"remoteSteerable": False}


@methods.on("session.remote.disable")
async def disable(call: Call, params: Nothing) -> JsonObject:
    return {}


class Steerable(msgspec.Struct, rename="camel"):
    remote_steerable: bool


@methods.on("session.remote.notifySteerableChanged", Steerable)
async def record_steerable(call: Call, params: Steerable) -> JsonObject:
    event = SessionRemoteSteerableChanged(remote_steerable=params.remote_steerable)
    call.session.live.emit(event)
    return {}
