"""The handshake, and questions about the server itself."""

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.ids import timestamp
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.protocol import VERSION
from trimtab.version import __version__

methods = Methods()


class Connect(msgspec.Struct, rename="camel"):
    token: str | None = None
    enable_git_hub_telemetry_forwarding: bool = False


class Ping(msgspec.Struct):
    message: str | None = None


@methods.on("connect", Connect)
async def connect(call: Call, params: Connect) -> JsonObject:
    call.server.authenticate(call.peer, params.token)
    call.peer.wants_telemetry = params.enable_git_hub_telemetry_forwarding
    return {"ok": True, "protocolVersion": VERSION, "version": __version__}


@methods.on("ping", Ping)
async def ping(call: Call, params: Ping) -> JsonObject:
    message = f"pong: {params.message}" if params.message else "pong"
    return {"message": message, "timestamp": timestamp(), "protocolVersion": VERSION}


@methods.on("status.get")
async def get_status(call: Call, params: Nothing) -> JsonObject:
    return {"version": __version__, "protocolVersion": VERSION}


@methods.on("runtime.shutdown")
async def shut_down(call: Call, params: Nothing) -> None:
    """Close all sessions; the process ends once its clients have left."""
    await call.server.shut_down()
