"""Responses to the model calls that a client makes."""

import base64

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.inference import Head

methods = Methods()


class Start(msgspec.Struct, rename="camel"):
    request_id: str
    status: int
    headers: dict[str, list[str]] = {}


class Failure(msgspec.Struct):
    message: str = ""


class Chunk(msgspec.Struct, rename="camel"):
    request_id: str
    data: str = ""
    binary: bool = False
    end: bool = False
    error: Failure | None = None


@methods.on("llmInference.setProvider")
async def set_provider(call: Call, params: Nothing) -> JsonObject:
    """Let this client make the model calls of sessions opened from now on."""
    call.server.inference = call.peer
    return {"success": True}


@methods.on("llmInference.httpResponseStart", Start)
async def start_response(call: Call, params: Start) -> JsonObject:
    exchange = call.server.exchanges.get(params.request_id)
    if exchange is None:
        return {"accepted": False}
    headers = {name.lower(): ", ".join(values) for name, values in params.headers.items()}
    exchange.start(Head(params.status, headers))
    return {"accepted": True}


@methods.on("llmInference.httpResponseChunk", Chunk)
async def add_chunk(call: Call, params: Chunk) -> JsonObject:
    exchange = call.server.exchanges.get(params.request_id)
    if exchange is None:
        return {"accepted": False}
    if params.binary:
        exchange.add(base64.b64decode(params.data))
    else:
        exchange.add(params.data.encode("utf-8", "surrogatepass"))
    if params.error is not None:
        exchange.end(params.error.message or "no reason given")
    elif params.end:
        exchange.end()
    return {"accepted": True}
