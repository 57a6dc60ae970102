"""Explains what a run would decide about a command or a path, without running anything.

The policy is gathered and applied by the functions that a run with the same flags uses.
"""

import asyncio
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.cli.inputs import build_options, find_permissions
from trimtab.cli.parse import parse
from trimtab.cli.permissions.preview import PermissionPreview, preview_permissions
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.options import PermissionOptions, SessionOptions
from trimtab.contracts.permission import Decision, Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.assess import read_script
from trimtab.permissions.paths import is_inside, resolve
from trimtab.permissions.processor import Permissions
from trimtab.permissions.rules import parse_rules

SHELL_TOOL = "bash"


class RuleSet(msgspec.Struct):
    """Rules to apply in addition to those in files."""

    allow: list[str] = []
    deny: list[str] = []
    ask: list[str] = []
    allow_all: bool = False
    allow_destructive: bool = False


class CommandRequest(msgspec.Struct, kw_only=True):
    """A command to judge under several sets of rules."""

    command: str
    shell: str = "bash"
    cwd: str | None = None
    home: str | None = None
    rule_sets: dict[str, RuleSet] = {}


class PathRequest(msgspec.Struct, kw_only=True):
    """A path that a tool would read or change. `flags` are those of a run."""

    path: str
    op: str = "read"
    tool: str = ""
    cwd: str | None = None
    grants: list[Any] = []
    flags: list[str] = []
    rules: list[Any] = []


def explain_request(request: Any) -> dict[str, Any]:
    """Answer a request. The answer to an invalid request has an `error`."""
    try:
        if not isinstance(request, dict):
            return {"error": "A request is an object with `command`, or with `op` and `path`."}
        if "command" in request:
            return explain_command(msgspec.convert(request, CommandRequest))
        return explain_path(msgspec.convert(request, PathRequest))
    except (msgspec.ValidationError, TrimtabError, ValueError) as error:
        return {"error": str(error)}


def explain_flags(command: str, shell: str, flags: Sequence[str]) -> dict[str, Any]:
    """Describe a command, with the decision of a run with these flags."""
    options = build_options(parse(list(flags)))
    preview = asyncio.run(preview_permissions(os.environ, options))
    decision = _judge(command, shell, preview.permissions)
    return {
        **read_script(command, preview.permissions.policy, shell).describe(),
        "decisions": {"given": decision.verdict},
        "reasons": {"given": decision.reason},
        "fences": {"given": preview.permissions.describe_fence(decision)},
        "warnings": list(preview.warnings),
    }


def explain_command(request: CommandRequest) -> dict[str, Any]:
    """Describe a command, with the decision under each set of rules."""
    cwd = request.cwd or os.getcwd()
    home = request.home or os.path.expanduser("~")
    analysis = read_script(
        request.command, _permissions(cwd, home, RuleSet()).policy, request.shell
    )
    decisions, reasons, fences = {}, {}, {}
    for name, rules in request.rule_sets.items():
        permissions = _permissions(cwd, home, rules)
        decision = _judge(request.command, request.shell, permissions)
        decisions[name], reasons[name] = decision.verdict, decision.reason
        fences[name] = permissions.describe_fence(decision)
    return {
        **analysis.describe(),
        "decisions": decisions,
        "reasons": reasons,
        "fences": fences,
    }


def explain_path(request: PathRequest) -> dict[str, Any]:
    """Return the target of a path, whether it is inside the allowed folders, and the decision."""
    if request.op not in ("read", "write", "create", "delete"):
        raise UsageError(
            f"There is no operation {request.op!r}; use read, write, create or delete."
        )
    cwd = request.cwd or os.getcwd()
    path = os.path.join(cwd, os.path.expanduser(request.path))
    policy = _path_policy(request, cwd)
    if "\0" in path:
        reason = "A path cannot contain a NUL character."
        return {"decision": "deny", "resolved": "", "inside": False, "reason": reason}
    access = Access(
        kind="read" if request.op == "read" else "write",
        target=path,
        mutates=request.op != "read",
        detail={"deletes": True} if request.op == "delete" else {},
    )
    decision = Permissions(policy).judge(access, request.tool)
    return {
        "decision": decision.verdict,
        "resolved": resolve(path),
        "inside": is_inside(path, policy.roots),
        "reason": decision.reason,
    }


def _judge(command: str, shell: str, permissions: Permissions) -> Decision:
    access = Access(kind="shell", target=command, interpreter=shell)
    return permissions.judge(access, SHELL_TOOL)


def _permissions(cwd: str, home: str, rules: RuleSet) -> Permissions:
    chosen = PermissionOptions(
        allow=tuple(rules.allow),
        deny=tuple(rules.deny),
        allow_all_tools=rules.allow_all,
        allow_all_paths=rules.allow_all,
        allow_all_urls=rules.allow_all,
        allow_destructive=rules.allow_destructive,
    )
    gathered = _gather(home, cwd, chosen).permissions
    policy = gathered.policy
    policy = msgspec.structs.replace(policy, ask=(*policy.ask, *parse_rules(rules.ask)))
    return Permissions(policy, fence=gathered.fence)


@lru_cache(256)
def _gather(home: str, cwd: str, permissions: PermissionOptions) -> PermissionPreview:
    """Gather a policy, once for many requests with the same folder and rules."""
    env = {**os.environ, "HOME": home}
    return asyncio.run(preview_permissions(env, SessionOptions(cwd=cwd, permissions=permissions)))


def _path_policy(request: PathRequest, cwd: str) -> Policy:
    """Return the policy of the flags. Entries of `rules` allow unless they have a `deny`."""
    chosen = find_permissions(parse(list(request.flags)), cwd)
    allow, deny = [*chosen.allow], [*chosen.deny]
    for rule in request.rules:
        given = rule if isinstance(rule, dict) else {"allow": rule}
        allow += _texts(given.get("allow"))
        deny += _texts(given.get("deny"))
    chosen = msgspec.structs.replace(chosen, allow=tuple(allow), deny=tuple(deny))
    policy = _gather(os.path.expanduser("~"), cwd, chosen).permissions.policy
    granted = _granted(request.grants, request.op)
    more = tuple(resolve(os.path.join(cwd, folder)) for folder in granted)
    return msgspec.structs.replace(policy, roots=(*policy.roots, *more))


def _texts(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    return (str(value),) if not isinstance(value, list) else [str(item) for item in value]


def _granted(grants: Sequence[Any], operation: str) -> Sequence[str]:
    """Return the granted directories; those for reading only if the operation is `read`."""
    folders = []
    for grant in grants:
        if isinstance(grant, str):
            folders.append(grant)
        elif isinstance(grant, dict) and isinstance(grant.get("path"), str):
            read_only = "read" in str(grant.get("access") or grant.get("mode") or "").split("-")
            if not read_only or operation == "read":
                folders.append(grant["path"])
    return folders
