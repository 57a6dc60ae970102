"""Canvases: panels that clients declare, and that clients and the model open."""

from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.host.canvases import Instance
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Open(msgspec.Struct, rename="camel"):
    canvas_id: str
    instance_id: str
    extension_id: str | None = None
    input: Any = None


class Invoke(msgspec.Struct, rename="camel"):
    instance_id: str
    action_name: str
    input: Any = None


class Close(msgspec.Struct, rename="camel"):
    instance_id: str


@methods.on("session.canvas.list")
async def list_canvases(call: Call, params: Nothing) -> JsonObject:
    return {"canvases": call.session.canvases.registered()}


@methods.on("session.canvas.listOpen")
async def list_open(call: Call, params: Nothing) -> JsonObject:
    return {"openCanvases": call.session.canvases.opened()}


@methods.on("session.canvas.open", Open)
async def open_canvas(call: Call, params: Open) -> Instance:
    return await call.session.canvases.open(
        params.canvas_id, params.instance_id, params.input, params.extension_id
    )


@methods.on("session.canvas.action.invoke", Invoke)
async def invoke_action(call: Call, params: Invoke) -> JsonObject:
    result = await call.session.canvases.invoke(
        params.instance_id, params.action_name, params.input
    )
    return {"result": result}


@methods.on("session.canvas.close", Close)
async def close_canvas(call: Call, params: Close) -> None:
    await call.session.canvases.close(params.instance_id)
