"""Says what would happen to a command or a path, and why, without doing it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.checkout.checkout import temp_folder
from trimtab.config.paths import find_home
from trimtab.contracts.errors import UsageError
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.assess import read_script
from trimtab.permissions.decide import decide
from trimtab.permissions.decide_shell import judge_analysis
from trimtab.permissions.paths import is_inside, resolve
from trimtab.permissions.rules import parse_rules


class RuleSet(msgspec.Struct):
    """Rules under which a command is judged."""

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
    """A path that a tool wants to read or change. `flags` are those of a run."""

    path: str
    op: str = "read"
    tool: str = ""
    cwd: str | None = None
    grants: list[Any] = []
    flags: list[str] = []
    rules: list[Any] = []


def explain_request(request: Any) -> dict[str, Any]:
    """The answer to one request; what is wrong with it is an answer, too."""
    try:
        if not isinstance(request, dict):
            return {"error": "A request is an object with `command`, or with `op` and `path`."}
        if "command" in request:
            return explain_command(msgspec.convert(request, CommandRequest))
        return explain_path(msgspec.convert(request, PathRequest))
    except (msgspec.ValidationError, UsageError, ValueError) as error:
        return {"error": str(error)}


def explain_command(request: CommandRequest) -> dict[str, Any]:
    """What a command would do, and the decision under each set of rules."""
    cwd = request.cwd or os.getcwd()
    home = request.home or os.path.expanduser("~")
    base = _base_policy(cwd, home)
    analysis = read_script(request.command, base, request.shell)
    decisions, reasons = {}, {}
    for name, rules in request.rule_sets.items():
        decision = judge_analysis(analysis, _with_rules(base, rules), request.command)
        decisions[name], reasons[name] = decision.verdict, decision.reason
    return {**analysis.describe(), "decisions": decisions, "reasons": reasons}


def explain_path(request: PathRequest) -> dict[str, Any]:
    """Where a path leads, whether that is inside, and the decision."""
    if request.op not in ("read", "write", "create", "delete"):
        raise UsageError(f"{request.op!r} is no operation; use read, write, create or delete.")
    cwd = request.cwd or os.getcwd()
    path = os.path.join(cwd, os.path.expanduser(request.path))
    policy = _path_policy(request, cwd)
    if "\0" in path:
        reason = "A path cannot hold a NUL character."
        return {"decision": "deny", "resolved": "", "inside": False, "reason": reason}
    access = Access(
        kind="read" if request.op == "read" else "write",
        target=path,
        mutates=request.op != "read",
        detail={"deletes": True} if request.op == "delete" else {},
    )
    decision = decide(access, policy)
    for rule in policy.deny:
        if request.tool and rule.kind == request.tool and rule.argument is None:
            decision = decide(Access(kind="custom-tool", target=request.tool), policy)
    return {
        "decision": decision.verdict,
        "resolved": resolve(path),
        "inside": is_inside(path, policy.roots),
        "reason": decision.reason,
    }


def _base_policy(cwd: str, home: str, env: Mapping[str, str] = os.environ) -> Policy:
    own = find_home({**env, "HOME": home})
    return Policy(
        cwd=cwd,
        roots=(resolve(cwd), resolve(temp_folder())),
        home=home,
        homes=tuple(dict.fromkeys((resolve(own.config), resolve(own.state)))),
    )


def _with_rules(policy: Policy, rules: RuleSet) -> Policy:
    return msgspec.structs.replace(
        policy,
        allow=parse_rules(rules.allow),
        deny=parse_rules(rules.deny),
        ask=parse_rules(rules.ask),
        allow_all_tools=rules.allow_all,
        allow_all_paths=rules.allow_all,
        allow_all_urls=rules.allow_all,
        allow_destructive=rules.allow_destructive,
    )


def _path_policy(request: PathRequest, cwd: str) -> Policy:
    """The flags of a run, read by the same table; rules in `rules` allow unless they say `deny`."""
    from trimtab.cli.inputs import find_permissions
    from trimtab.cli.parse import parse

    chosen = find_permissions(parse(list(request.flags)), cwd)
    allow, deny = [*chosen.allow], [*chosen.deny]
    for rule in request.rules:
        given = rule if isinstance(rule, dict) else {"allow": rule}
        allow += _texts(given.get("allow"))
        deny += _texts(given.get("deny"))
    roots = [cwd, *chosen.add_dirs, *_granted(request.grants, request.op)]
    if chosen.temp_dir:
        roots.append(temp_folder())
    base = _base_policy(cwd, os.path.expanduser("~"))
    return msgspec.structs.replace(
        base,
        roots=tuple(resolve(os.path.join(cwd, root)) for root in roots),
        allow_all_tools=chosen.allow_all_tools,
        allow_all_paths=chosen.allow_all_paths,
        allow_destructive=chosen.allow_destructive,
        allow=parse_rules(allow),
        deny=parse_rules(deny),
    )


def _texts(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    return (str(value),) if not isinstance(value, list) else [str(item) for item in value]


def _granted(grants: Sequence[Any], operation: str) -> Sequence[str]:
    """Directories that were granted; one granted for reading only counts for reading."""
    folders = []
    for grant in grants:
        if isinstance(grant, str):
            folders.append(grant)
        elif isinstance(grant, dict) and isinstance(grant.get("path"), str):
            limited = "read" in str(grant.get("access") or grant.get("mode") or "").split("-")
            if not limited or operation == "read":
                folders.append(grant["path"])
    return folders
