"""Turns answers that hold for more than one call into rules, and into what is kept."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer, Policy, Rule
from trimtab.contracts.tool import Access

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.analysis import Analysis


OUTSIDE = "outside"
"""The kind of rules by which commands run outside the sandbox. Only answers make them."""

THIS_MACHINE = ("http://localhost:*", "http://127.0.0.1:*")
"""Patterns for whatever listens on this machine."""


class ApprovalKeeper(Protocol):
    """Keeps approvals for a location, or for always, after the session has ended."""

    @property
    def location(self) -> str: ...

    def keep(self, approval: JsonObject, *, always: bool) -> None: ...

    def find_checks(self) -> Sequence[str] | None:
        """Return the commands that build, check or start the project; None without trust."""

    def find_hosts(self) -> Sequence[str]:
        """Return the hosts from which a trusted project is fetched and built, as addresses."""


def generalise(
    access: Access, analysis: "Analysis | None", policy: Policy | None = None
) -> JsonObject | None:
    """The approval that a request offers for more than once; None if it offers none.

    With a policy, files that a command writes may be part of it.
    """
    match access.kind:
        case "shell":
            return _generalise_command(analysis, policy) if analysis else None
        case "read":
            return _generalise_read(access.target, policy)
        case "write" | "memory" as kind:
            folders = _find_opened([access.target], policy) if kind == "write" else []
            return {"kind": kind, "writesFolders": folders} if folders else {"kind": kind}
        case "mcp":
            server, tool = access.detail.get("serverName"), access.detail.get("toolName")
            return {"kind": "mcp", "serverName": server, "toolName": tool}
        case "custom-tool" | "url":
            field = "url" if access.kind == "url" else "toolName"
            return {"kind": access.kind, field: access.target.partition("?")[0]}
        case other:
            return None if other == "none" else {"kind": other, "target": access.target}


def _generalise_read(path: str, policy: Policy | None) -> JsonObject | None:
    """Offer the folder of a file that is outside; none if the name is one that secrets have."""
    if policy is None:
        return {"kind": "read"}
    from trimtab.permissions.paths import resolve
    from trimtab.permissions.read_folders import find_folder, is_secret

    if folder := find_folder(path, policy):
        return {"kind": "read", "readsFolders": [folder]}
    return None if is_secret(resolve(path), policy.home) else {"kind": "read"}


def _generalise_command(analysis: "Analysis", policy: Policy | None) -> JsonObject | None:
    """Return rules for the commands, and for folders outside that are read or worked in."""
    approval = _find_approval(analysis, policy)
    if policy is None or not _asks_still(analysis, policy, approval):
        return approval
    from trimtab.permissions.work_folders import offer_work_folders

    folders = offer_work_folders(analysis, policy)
    held = policy.confined or policy.allow_all_tools
    programs = {"kind": "write"} if held else None
    programs = programs or _generalise_programs(analysis, _open(folders, policy))
    if not folders or programs is None:
        return approval
    widest = programs | {"writesFolders": list(folders)}
    return approval if _asks_still(analysis, policy, widest) else widest


def _asks_still(analysis: "Analysis", policy: Policy, approval: JsonObject | None) -> bool:
    """Return True if a command would be asked about again after an approval."""
    from trimtab.permissions.decide_shell import judge_analysis
    from trimtab.permissions.work_folders import widen

    allow = (*policy.allow, *to_rules(approval, "session"))
    approved = widen(msgspec.structs.replace(policy, allow=allow))
    return judge_analysis(analysis, approved).verdict == "ask"


def _find_approval(analysis: "Analysis", policy: Policy | None) -> JsonObject | None:
    """Return rules for the commands, and for the folders outside that they read."""
    folders = _find_folders(analysis, policy) if policy is not None else []
    approval = None
    held = policy is not None and (policy.confined or policy.allow_all_tools)
    if opened := _find_opened([*analysis.targets, *analysis.touched], policy):
        policy = _open(opened, policy)
    if not held:
        approval = _generalise_programs(analysis, policy)
    if opened and (approval is not None or held):
        approval = (approval or {"kind": "write"}) | {"writesFolders": opened}
        approval |= {"writesFiles": True} if _writes_more(analysis) else {}
    if approval is not None:
        return approval | {"readsFolders": folders} if folders else approval
    offered = folders and (held or analysis.seems_read_only)
    return {"kind": "read", "readsFolders": folders} if offered else None


def _find_opened(paths: Sequence[str | None], policy: Policy | None) -> list[str]:
    """Return the folders of agents that would have to be opened for changes of these paths."""
    if policy is None or policy.allow_all_paths:
        return []
    from trimtab.permissions.agent_folders import offer_agent_folders

    return offer_agent_folders([path for path in paths if path is not None], policy)


def _writes_more(analysis: "Analysis") -> bool:
    """Return True if files are changed that are not protected, so that they need a rule, too."""
    from trimtab.permissions.paths import is_protected

    return not all(
        path is None or is_protected(path) for path in (*analysis.targets, *analysis.touched)
    )


def _open(folders: Sequence[str], policy: Policy | None) -> Policy | None:
    from trimtab.permissions.work_folders import widen

    rules = tuple(Rule("write", f"{folder}/", "session") for folder in folders)
    return policy and widen(msgspec.structs.replace(policy, allow=(*policy.allow, *rules)))


def _find_folders(analysis: "Analysis", policy: Policy) -> list[str]:
    """Return the folders to offer, if to allow them answers all questions about reading."""
    from trimtab.permissions.places_elsewhere import find_outside, find_places_elsewhere
    from trimtab.permissions.read_folders import offer_folders

    named = [*analysis.reads, *(analysis.given if policy.confined else ())]
    outside = [] if policy.allow_all_paths else list(find_outside(analysis, named, policy))
    outside += [path for path, copied in find_places_elsewhere(analysis, policy) if copied]
    return offer_folders(outside, policy) or []


def _generalise_programs(analysis: "Analysis", policy: Policy | None) -> JsonObject | None:
    from trimtab.permissions.agent_folders import name_agent_folder
    from trimtab.permissions.file_commands import are_changeable, changes_named_files
    from trimtab.permissions.narrow_names import name_narrowly

    targets = [path for path in analysis.targets if path is not None]
    if not analysis.can_be_ruled or len(targets) < len(analysis.targets):
        return None
    unfit = targets and (policy is None or not are_changeable(targets, policy))
    if unfit or (policy is not None and _needs_more_than_rules(analysis, policy)):
        return None
    asked = [found for found in analysis.commands if not found.read_only and not found.shadow]
    names = [found.identifier for found in asked]
    opened = policy is not None and any(map(name_agent_folder, policy.allow))
    if policy is not None and opened and changes_named_files(names, analysis, policy):
        return {"kind": "write"}
    named = list(map(name_narrowly, asked))
    narrow = list(dict.fromkeys(name for name in named if name is not None))
    if len(narrow) < len(set(named)):
        return None
    identifiers = name_usefully(narrow, policy)
    if not identifiers:
        return {"kind": "write"} if targets else None
    approval: JsonObject = {"kind": "commands", "commandIdentifiers": identifiers}
    return approval | {"writesFiles": True} if targets else approval


def _needs_more_than_rules(analysis: "Analysis", policy: Policy) -> bool:
    """Return True if files elsewhere are worked on for which no lasting answer is offered."""
    from trimtab.permissions.places_elsewhere import find_places_elsewhere
    from trimtab.permissions.read_folders import find_folder, find_granted

    return any(
        not copied or not (find_granted((path,), policy) or find_folder(path, policy))
        for path, copied in find_places_elsewhere(analysis, policy)
    )


def name_usefully(names: Sequence[str], policy: Policy | None) -> list[str]:
    """Return commands, and in place of some their group, if answers allow others of it.

    So a person who always takes the narrowest rule is not asked about each command of a group.
    """
    from trimtab.permissions.groups import find_common, find_member
    from trimtab.permissions.read_folders import ANSWERS

    allow = policy.allow if policy is not None else ()
    answered = [rule for rule in allow if rule.kind == "shell" and rule.source in ANSWERS]
    known = [rule.argument for rule in answered if rule.argument]
    if not known:
        return list(names)
    common = (find_common(name, known) for name in names if name not in known)
    groups = [group for group in dict.fromkeys(common) if group]
    alone = [name for name in names if not any(find_member(group, name) for group in groups)]
    return [*alone, *groups]


def to_rules(approval: Any, source: str) -> tuple[Rule, ...]:
    """The rules that a kept approval stands for; none if it is not understood."""
    rules: list[Rule] = []
    match approval:
        case {"kind": "commands", "commandIdentifiers": list(names)}:
            kind = OUTSIDE if approval.get("outsideSandbox") is True else "shell"
            rules += [Rule(kind, name, source) for name in names if isinstance(name, str)]
            rules += [Rule("write", None, source)] if approval.get("writesFiles") is True else []
        case {"kind": "write", "writesFolders": list()}:
            rules += [Rule("write", None, source)] if approval.get("writesFiles") is True else []
        case {"kind": "write" | "memory" as kind}:
            rules.append(Rule(kind, None, source))
        case {"kind": "read", "path": str(path)}:
            # A slash at the end would make it a rule for all that is below.
            rules.append(Rule("read", path.rstrip("/") or "/", source))
        case {"kind": "mcp", "serverName": str(server), "toolName": (str() | None) as tool}:
            digest = approval.get("toolDigest")
            bound = digest if isinstance(digest, str) else ""
            rules.append(Rule(server, tool, source, digest=bound))
        case {"kind": "custom-tool", "toolName": str(name)}:
            rules.append(Rule("custom-tool", name, source))
        case {"kind": "url", "url": str(address)}:
            rules.append(Rule("url", address, source))
        case {"kind": str(kind), "target": str(target)}:
            rules.append(Rule(kind, target, source))
    return (*rules, *_to_more_rules(approval, source))


def _to_more_rules(approval: Any, source: str) -> Iterator[Rule]:
    """Yield the rules for hosts and folders that go with an approval."""
    more = approval if isinstance(approval, dict) else {}
    addresses, folders = more.get("urls"), more.get("readsFolders")
    for address in addresses if isinstance(addresses, list) else ():
        if isinstance(address, str) and address.startswith(("https://", *THIS_MACHINE)):
            yield Rule("url", address, source)
    for folder in folders if isinstance(folders, list) else ():
        if isinstance(folder, str) and folder.startswith("/") and folder.strip("/"):
            yield Rule("read", folder.rstrip("/") + "/", source)
    opened = more.get("writesFolders")
    for folder in opened if isinstance(opened, list) else ():
        if isinstance(folder, str) and folder.startswith("/") and folder.strip("/"):
            yield Rule("write", folder.rstrip("/") + "/", source)


def describe_cover(rules: Sequence[Rule]) -> str:
    """Return what else rules would cover, in a sentence for the person who is asked."""
    parts = []
    for rule in rules:
        if rule.kind == "shell":
            parts.append(_describe_commands(rule.argument or ""))
        elif rule.kind == OUTSIDE:
            parts.append(f"every `{rule.argument}` command, run outside the sandbox")
        elif rule.kind == "write":
            parts.append(_describe_writing(rule.argument or ""))
        elif rule.kind == "read":
            parts.append(_describe_reading(rule.argument or ""))
        elif rule.kind == "memory":
            parts.append("everything that is put into memory")
        elif rule.kind == "custom-tool":
            parts.append(f"every call of {rule.argument}")
        elif rule.kind == "url":
            parts.append(f"every address that begins with {rule.argument}")
        else:
            parts.append(f"every call of {rule.argument or 'any tool'} of {rule.kind}")
    return "; ".join(parts) + "." if parts else ""


def _describe_commands(name: str) -> str:
    from trimtab.permissions.file_commands import ON_FILES
    from trimtab.permissions.groups import find_group

    if group := find_group(name):
        return f"{group.title} ({group.examples})" if group.commands else group.title
    if name in ON_FILES:
        return f"every `{name}` command on files in the allowed directories"
    return f"every `{name}` command, whatever its arguments"


def _describe_writing(path: str) -> str:
    from trimtab.permissions.work_folders import name_work_folder

    if name_work_folder(Rule("write", path)):
        return f"reading and changing everything below {path}, as in this folder"
    if path.endswith("/"):
        return f"every change below {path}, but for settings, hooks, plugins and servers"
    return f"every change of {path}" if path else "every change of files in the allowed directories"


def _describe_reading(path: str) -> str:
    if path.endswith("/"):
        return f"every reading below {path}, but for files named like secrets"
    return f"every reading of {path}"


def name_briefly(rule: str) -> str:
    """Return a rule for commands or hosts by the name: of `shell(git add)` that is `git add`."""
    from trimtab.permissions.groups import find_group

    match = re.fullmatch(r"(?:shell|url)\((?:https://)?(.*)\)", rule)
    name = match[1] if match else rule
    if group := find_group(name):
        return group.examples
    return "the project's own programs" if name == "./" else name


def holds_everywhere(request: JsonObject) -> bool:
    """Return True if an answer may hold in every folder: the rules name what to read elsewhere."""
    rules = request.get("suggestedRules") or ()
    return bool(rules) and all(re.fullmatch(r"read\(/.+/\)", str(rule)) for rule in rules)


BUNDLES = {"c": "bundle", "d": "everyday"}
"""The keys that allow a bundle of rules, and the fields of a request that hold it."""


def describe_bundle(bundle: JsonObject) -> str:
    """Return what a bundle of rules allows, or the bundles that it is made of.

    Empty if its title says it all.
    """
    rules = bundle["rules"]
    if len(rules) == 1 and not rules[0].startswith("shell(@"):
        return ""
    groups_last = sorted(rules, key=lambda rule: rule.startswith("shell(@"))
    return ", ".join(bundle.get("parts") or map(name_briefly, groups_last))


def approve_bundle(request: JsonObject, field: str = "bundle") -> Answer:
    """Return the answer that allows the whole bundle of rules that a request offers."""
    _, approval = offer_rules(request, ", ".join(request[field]["rules"]))
    return Answer(kind="approve-for-location", approval=approval)


def offer_rules(request: JsonObject, text: str) -> tuple[JsonObject, JsonObject]:
    """Return a request for a command that offers the rules a person wrote, and what they cover.

    Raises `UsageError` for rules that cannot be read or are not about commands.
    """
    from trimtab.contracts.errors import UsageError
    from trimtab.permissions.agent_folders import name_agent_folder
    from trimtab.permissions.read_folders import freeze, name_folder
    from trimtab.permissions.rules import parse_rules
    from trimtab.permissions.work_folders import name_work_folder

    rules = freeze(parse_rules(re.findall(r"[^,()]+\([^()]*\)|[^,\s][^,]*", text), "session"))
    names = [rule.argument for rule in rules if rule.kind == "shell" and rule.argument]
    writes = [rule for rule in rules if rule.kind == "write" and rule.argument is None]
    folders = [folder for folder in map(name_folder, rules) if folder.strip("/")]
    opened = [name_agent_folder(rule) or name_work_folder(rule) for rule in rules]
    opened = [folder for folder in opened if folder]
    urls = [rule.argument for rule in rules if rule.kind == "url" and rule.argument]
    if not rules or len((*names, *writes, *folders, *opened, *urls)) < len(rules):
        raise UsageError(
            "Only rules for commands can be written here, such as shell(git:*), write, "
            "read(/FOLDER/), write(/FOLDER/) and url(https://HOST)."
        )
    offered = {
        "suggestedRules": [str(rule) for rule in rules],
        "suggestedRulesCover": describe_cover(rules),
    }
    approval: JsonObject = {"kind": "write" if writes or opened else "url" if urls else "read"}
    if names:
        approval = {"kind": "commands", "commandIdentifiers": names}
    if writes and (names or opened):
        approval |= {"writesFiles": True}
    more: JsonObject = {"readsFolders": folders, "urls": urls, "writesFolders": opened}
    approval |= {name: values for name, values in more.items() if values}
    return request | offered, approval
