"""Permission rules that clients give: for a session, for a location, and trust in folders."""

import os
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from trimtab.config.trust import Trust, find_root, trust_key
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Rule
from trimtab.permissions.agent_folders import name_agent_folder
from trimtab.permissions.approvals import to_rules
from trimtab.permissions.read_folders import freeze, name_folder
from trimtab.permissions.rules import parse_rule
from trimtab.permissions.work_folders import name_work_folder
from trimtab.policy.saved_approvals import SavedApprovals
from trimtab.transports.rpc.dispatch import Call, Methods
from trimtab.transports.rpc.folders import require_folder, require_folders

methods = Methods()
SOURCES = {"session": ("for-session",), "location": ("for-location", "location")}
"""The sources of rules that clients may remove, by scope."""


class RuleSettings(msgspec.Struct, frozen=True):
    kind: str
    argument: str | None = None

    @property
    def text(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"

    def read(self, source: str) -> Rule:
        """Return the rule. Raises `UsageError`."""
        return parse_rule(self.text, source)


class Path(msgspec.Struct):
    path: str


class Folder(msgspec.Struct, rename="camel"):
    working_directory: str


@methods.on("session.permissions.folderTrust.isTrusted", Path)
async def is_trusted(call: Call, params: Path) -> JsonObject:
    return {"trusted": Trust(call.server.runtime.home).is_trusted(params.path)}


@methods.on("session.permissions.folderTrust.addTrusted", Path)
async def add_trusted(call: Call, params: Path) -> JsonObject:
    """Trust a folder for good; sessions that are opened there later use its configuration."""
    Trust(call.server.runtime.home).trust(require_folder(params.path))
    return {"success": True}


def find_location(folder: str) -> JsonObject:
    """Return the name under which approvals for a folder are kept, and its kind."""
    in_repository = os.path.exists(os.path.join(find_root(folder), ".git"))
    return {"locationKey": trust_key(folder), "locationType": "repo" if in_repository else "dir"}


def open_approvals(call: Call, key: str) -> SavedApprovals:
    return SavedApprovals(call.server.runtime.home.permissions, key)


@methods.on("session.permissions.locations.resolve", Folder)
async def resolve_location(call: Call, params: Folder) -> JsonObject:
    return find_location(params.working_directory)


@methods.on("session.permissions.locations.apply", Folder)
async def apply_location(call: Call, params: Folder) -> JsonObject:
    """Apply the approvals that are kept for a folder to this session."""
    location = find_location(params.working_directory)
    granted = open_approvals(call, location["locationKey"]).load()
    controls = call.session.live.controls
    permissions, options = controls.agent.parts.permissions, controls.options.permissions
    new = [rule for rule in granted.rules if rule not in permissions.policy.allow]
    folders = [folder for folder in granted.directories if folder not in options.add_dirs]
    if folders:
        changed = msgspec.structs.replace(options, add_dirs=(*options.add_dirs, *folders))
        controls.set_permissions(changed)
    permissions.grant(granted.rules)
    return {
        **location,
        "changed": bool(new or folders),
        "appliedRuleCount": len(new),
        "appliedDirectoryCount": len(folders),
        "appliedRules": [{"kind": rule.kind, "argument": rule.argument} for rule in granted.rules],
    }


class AddApproval(msgspec.Struct, rename="camel"):
    location_key: str
    approval: JsonObject


@methods.on("session.permissions.locations.addToolApproval", AddApproval)
async def add_approval(call: Call, params: AddApproval) -> JsonObject:
    """Keep an approval for a location, and apply it to this session."""
    rules = to_rules(params.approval, "for-location")
    if not rules:
        kind = params.approval.get("kind")
        raise UsageError(f"An approval of the kind {kind!r} cannot be kept; approve it once.")
    open_approvals(call, params.location_key).keep(params.approval, always=False)
    call.session.live.controls.agent.parts.permissions.grant(rules)
    return {"success": True}


class ModifyRules(msgspec.Struct, rename="camel"):
    scope: Literal["session", "location"]
    add: tuple[RuleSettings, ...] = ()
    remove: tuple[RuleSettings, ...] = ()
    remove_all: bool = False


@methods.on("session.permissions.modifyRules", ModifyRules)
async def modify_rules(call: Call, params: ModifyRules) -> JsonObject:
    """Add or remove rules of this session, or of its location. Flags and files are not changed."""
    controls = call.session.live.controls
    permissions = controls.agent.parts.permissions
    source = f"for-{params.scope}"
    added = tuple(rule.read(source) for rule in params.add)
    gone = {(rule.kind, rule.argument) for rule in map(_read_removed, params.remove)}
    covered = _covers(gone, everything=params.remove_all)
    if params.scope == "location":
        saved = open_approvals(call, trust_key(controls.options.cwd))
        saved.drop(lambda item: all(map(covered, to_rules(item, source))))
        for rule in freeze(added):
            saved.keep(_to_approval(rule), always=False)
    permissions.revoke(covered, SOURCES[params.scope])
    permissions.grant(added)
    return {"success": True}


def _read_removed(rule: RuleSettings) -> Rule:
    return rule.read("")


def _covers(gone: set[tuple[str, str | None]], *, everything: bool) -> Callable[[Rule], bool]:
    return lambda rule: everything or (rule.kind, rule.argument) in gone


def _to_approval(rule: Rule) -> JsonObject:
    """Return a rule in the form in which approvals are kept."""
    if rule.kind in ("shell", "read", "url", "write", "memory"):
        approval = _to_named_approval(rule)
        if approval is None:
            raise UsageError(
                f"The rule {rule.kind} cannot be kept for a location; add it for the session."
            )
        return approval
    return {"kind": "mcp", "serverName": rule.kind, "toolName": rule.argument}


def _to_named_approval(rule: Rule) -> JsonObject | None:
    match rule.kind, rule.argument:
        case "shell", str(name):
            return {"kind": "commands", "commandIdentifiers": [name]}
        case ("write" | "memory") as kind, None:
            return {"kind": kind}
        case "read", str(path):
            folder = name_folder(rule)
            return {"kind": "read"} | ({"readsFolders": [folder]} if folder else {"path": path})
        case "url", str(address):
            return {"kind": "url", "url": address}
        case "write", _ if folder := name_agent_folder(rule) or name_work_folder(rule):
            return {"kind": "write", "writesFolders": [folder]}
    return None


class RuleLists(msgspec.Struct):
    approved: tuple[RuleSettings, ...] = ()
    denied: tuple[RuleSettings, ...] = ()


class PathSettings(msgspec.Struct, rename="camel"):
    unrestricted: bool | None = None
    additional_directories: tuple[str, ...] | None = None
    include_temp_directory: bool | None = None


class UrlSettings(msgspec.Struct, rename="camel"):
    unrestricted: bool | None = None
    initial_allowed: tuple[str, ...] = ()


class Configure(msgspec.Struct, rename="camel"):
    approve_all_tool_permission_requests: bool | None = None
    approve_all_read_permission_requests: bool | None = None
    rules: RuleLists | None = None
    paths: PathSettings | None = None
    urls: UrlSettings | None = None
    additional_content_exclusion_policies: tuple[JsonObject, ...] = ()


@methods.on("session.permissions.configure", Configure)
async def configure(call: Call, params: Configure) -> JsonObject:
    """Replace parts of the permissions. The rules of the server's own flags stay."""
    if params.additional_content_exclusion_policies:
        raise UsageError(
            "Content exclusions are read from the policy files of the machine; leave "
            "additionalContentExclusionPolicies out."
        )
    controls = call.session.live.controls
    before, own = controls.options.permissions, call.server.defaults.permissions
    changes: dict[str, Any] = {
        "allow_all_tools": params.approve_all_tool_permission_requests,
        **_read_lists(params, before, own),
    }
    if params.paths is not None:
        changes["allow_all_paths"] = params.paths.unrestricted
        changes["temp_dir"] = params.paths.include_temp_directory
        if params.paths.additional_directories is not None:
            named = require_folders(params.paths.additional_directories, controls.options.cwd)
            changes["add_dirs"] = (*own.add_dirs, *named)
    if params.urls is not None:
        changes["allow_all_urls"] = params.urls.unrestricted
    given = {name: value for name, value in changes.items() if value is not None}
    controls.set_permissions(msgspec.structs.replace(before, **given))
    return {"success": True}


def _read_lists(
    params: Configure, before: PermissionOptions, own: PermissionOptions
) -> dict[str, tuple[str, ...]]:
    """Return the changed lists of rules. Raises `UsageError` for one that cannot be read."""
    allow, deny = list(before.allow), list(before.deny)
    if params.rules is not None:
        for rule in (*params.rules.approved, *params.rules.denied):
            rule.read("flag")
        allow = [*own.allow, *(rule.text for rule in params.rules.approved)]
        deny = [*own.deny, *(rule.text for rule in params.rules.denied)]
    if params.approve_all_read_permission_requests is not None:
        allow = [rule for rule in allow if rule != "read"]
        allow += ["read"] if params.approve_all_read_permission_requests else []
    if params.urls is not None:
        allow += [f"url({address})" for address in params.urls.initial_allowed]
    return {"allow": tuple(allow), "deny": tuple(deny)}
