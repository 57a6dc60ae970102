"""Permissions: answers to open requests, and the rules of the session."""

import os
from typing import Any

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.permission import Answer
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing
from trimtab.transports.rpc.folders import require_folder

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
    folders = (*rules.add_dirs, require_folder(params.path))
    controls.set_permissions(msgspec.structs.replace(rules, add_dirs=folders))
    return {"success": True}


@methods.on("session.permissions.paths.list")
async def list_paths(call: Call, params: Nothing) -> JsonObject:
    options: Any = call.session.live.controls.options
    return {"directories": [options.cwd, *options.permissions.add_dirs], "primary": options.cwd}


@methods.on("session.permissions.paths.updatePrimary", AddPath)
async def set_primary_path(call: Call, params: AddPath) -> JsonObject:
    cwd = call.session.live.controls.options.cwd
    await call.session.set_folder(require_folder(params.path, cwd))
    return {"success": True}


@methods.on("session.permissions.paths.isPathWithinAllowedDirectories", AddPath)
async def is_allowed_path(call: Call, params: AddPath) -> JsonObject:
    options = call.session.live.controls.options
    path = os.path.join(options.cwd, params.path)
    folders = (options.cwd, *options.permissions.add_dirs)
    return {"allowed": any(is_within(path, folder) for folder in folders)}


@methods.on("session.permissions.paths.isPathWithinWorkspace", AddPath)
async def is_workspace_path(call: Call, params: AddPath) -> JsonObject:
    """Report whether a path is in the folder of the session itself."""
    live = call.session.live
    path = os.path.join(live.controls.options.cwd, params.path)
    return {"allowed": is_within(path, live.folder.path)}


def is_within(path: str, folder: str) -> bool:
    """Return True if a path leads to a folder or below it, wherever links lead."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


@methods.on("session.permissions.urls.setUnrestrictedMode", SetApproveAll)
async def set_unrestricted_urls(call: Call, params: SetApproveAll) -> JsonObject:
    controls = call.session.live.controls
    rules = msgspec.structs.replace(controls.options.permissions, allow_all_urls=params.enabled)
    controls.set_permissions(rules)
    return {"success": True}


class Required(msgspec.Struct):
    required: bool


@methods.on("session.permissions.setRequired", Required)
async def set_required(call: Call, params: Required) -> JsonObject:
    """Note whether the client answers permission requests; they are events in any case."""
    participant = call.participant
    participant.capabilities = msgspec.structs.replace(
        participant.capabilities, request_permission=params.required
    )
    return {"success": True}


class Shown(msgspec.Struct):
    message: str


@methods.on("session.permissions.notifyPromptShown", Shown)
async def note_shown(call: Call, params: Shown) -> JsonObject:
    """Do nothing: `notification` hooks hear of a permission request when it is made."""
    return {"success": True}


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
