"""Permissions: answers to open requests, and the rules of the session."""

from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.permission import Answer
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()

KINDS = frozenset(
    (
        "approve-once",
        "approve-for-session",
        "approve-for-location",
        "approve-permanently",
        "reject",
        "user-not-available",
    )
)


class Verdict(msgspec.Struct):
    kind: str
    feedback: str | None = None
    approval: JsonObject | None = None


class HandlePending(msgspec.Struct, rename="camel"):
    request_id: str
    result: Verdict


@methods.on("session.permissions.handlePendingPermissionRequest", HandlePending)
async def handle_pending(call: Call, params: HandlePending) -> JsonObject:
    """Answer a permission request; returns False if it was answered before."""
    kind = params.result.kind
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a decision; use one of {', '.join(sorted(KINDS))}.")
    given = params.result
    answer = Answer(kind=kind, feedback=given.feedback, approval=given.approval)
    return {"success": call.session.questions.answer(params.request_id, answer)}


@methods.on("session.permissions.pendingRequests")
async def list_pending(call: Call, params: Nothing) -> JsonObject:
    items = [
        {"requestId": data.request_id, "request": data.prompt_request or _prompt(data)}
        for data in call.session.open_requests("permission.requested")
    ]
    return {"items": items}


class SetApproveAll(msgspec.Struct):
    enabled: bool


@methods.on("session.permissions.setApproveAll", SetApproveAll)
async def set_approve_all(call: Call, params: SetApproveAll) -> JsonObject:
    controls = call.session.live.controls
    controls.set_permissions(
        msgspec.structs.replace(
            controls.options.permissions,
            allow_all_tools=params.enabled,
            allow_all_paths=params.enabled,
            allow_all_urls=params.enabled,
        )
    )
    return {"success": True}


@methods.on("session.permissions.resetSessionApprovals")
async def reset_approvals(call: Call, params: Nothing) -> JsonObject:
    controls = call.session.live.controls
    controls.set_permissions(controls.options.permissions)
    return {"success": True}


@methods.on("session.permissions.getMode")
async def get_mode(call: Call, params: Nothing) -> JsonObject:
    return {"mode": _mode(call)}


class SetMode(msgspec.Struct):
    mode: str


@methods.on("session.permissions.setMode", SetMode)
async def set_mode(call: Call, params: SetMode) -> JsonObject:
    if params.mode not in ("manual", "allow-all"):
        raise UsageError(
            f"Permission mode {params.mode!r} is not available; use manual or allow-all."
        )
    await set_approve_all(call, SetApproveAll(enabled=params.mode == "allow-all"))
    return {"success": True, "mode": _mode(call)}


class AddPath(msgspec.Struct):
    path: str


@methods.on("session.permissions.paths.add", AddPath)
async def add_path(call: Call, params: AddPath) -> JsonObject:
    controls = call.session.live.controls
    rules = controls.options.permissions
    folders = (*rules.add_dirs, params.path)
    controls.set_permissions(msgspec.structs.replace(rules, add_dirs=folders))
    return {"success": True}


@methods.on("session.permissions.paths.list")
async def list_paths(call: Call, params: Nothing) -> JsonObject:
    options: Any = call.session.live.controls.options
    return {"directories": [options.cwd, *options.permissions.add_dirs], "primary": options.cwd}


def _prompt(data: PermissionRequested) -> JsonObject:
    """Return the request in the form shown to a person, which differs for commands."""
    request = data.permission_request
    if request.get("kind") != "shell":
        return request
    commands = [str(command.get("identifier")) for command in request.get("commands") or ()]
    fields = ("fullCommandText", "intention", "canOfferSessionApproval", "toolCallId")
    shown = {name: request[name] for name in fields if name in request}
    return {"kind": "commands", "commandIdentifiers": commands, **shown}


def _mode(call: Call) -> str:
    rules = call.session.live.controls.options.permissions
    return "allow-all" if rules.allow_all_tools else "manual"
