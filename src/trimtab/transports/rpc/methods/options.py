"""Changes the options and the mode of a running session."""

from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.run import Mode
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Update(msgspec.Struct, rename="camel"):
    """The options that have an effect; others are ignored."""

    available_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] | None = None
    enable_streaming: bool | None = None
    ask_user_disabled: bool | None = None
    client_name: str | None = None
    reasoning_effort: str | None = None
    skip_custom_instructions: bool | None = None


@methods.on("session.options.update", Update)
async def update(call: Call, params: Update) -> JsonObject:
    hosted = call.session
    controls = hosted.live.controls
    changes: dict[str, Any] = {
        name: value
        for name in ("available_tools", "excluded_tools", "client_name")
        if (value := getattr(params, name)) is not None
    }
    if params.ask_user_disabled:
        excluded = changes.get("excluded_tools", controls.options.excluded_tools)
        changes["excluded_tools"] = (*excluded, "ask_user")
    if changes:
        controls.change_options(**changes)
    if params.enable_streaming is not None:
        controls.set_streaming(params.enable_streaming)
    if params.reasoning_effort is not None:
        controls.set_effort(params.reasoning_effort)
    custom = controls.setup.customizations
    if params.skip_custom_instructions is not None and custom is not None:
        custom.loads_instructions = not params.skip_custom_instructions
        controls.refresh()
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
