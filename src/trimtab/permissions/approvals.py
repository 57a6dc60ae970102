"""Turns answers that hold for more than one call into rules, and into what is kept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Rule
from trimtab.contracts.tool import Access

if TYPE_CHECKING:
    from trimtab.permissions.shell.verdict.analysis import Analysis


class ApprovalKeeper(Protocol):
    """Keeps approvals for a location, or for always, after the session has ended."""

    @property
    def location(self) -> str: ...

    def keep(self, approval: JsonObject, *, always: bool) -> None: ...


def generalise(access: Access, analysis: "Analysis | None") -> JsonObject | None:
    """The approval that a request offers for more than once; None if it offers none."""
    match access.kind:
        case "shell":
            if analysis is None or not analysis.can_be_offered:
                return None
            names = [f.identifier for f in analysis.commands if not f.read_only and not f.shadow]
            identifiers = list(dict.fromkeys(names))
            return {"kind": "commands", "commandIdentifiers": identifiers} if identifiers else None
        case "write" | "read" | "memory":
            return {"kind": access.kind}
        case "mcp":
            server, tool = access.detail.get("serverName"), access.detail.get("toolName")
            return {"kind": "mcp", "serverName": server, "toolName": tool}
        case "custom-tool" | "url":
            field = "url" if access.kind == "url" else "toolName"
            return {"kind": access.kind, field: access.target.partition("?")[0]}
        case other:
            return None if other == "none" else {"kind": other, "target": access.target}


def to_rules(approval: Any, source: str) -> tuple[Rule, ...]:
    """The rules that a kept approval stands for; none if it is not understood."""
    rules: list[Rule] = []
    match approval:
        case {"kind": "commands", "commandIdentifiers": list(names)}:
            rules += [Rule("shell", name, source) for name in names if isinstance(name, str)]
        case {"kind": "write" | "memory" as kind}:
            rules.append(Rule(kind, None, source))
        case {"kind": "read", "path": str(path)}:
            rules.append(Rule("read", path, source))
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
    return tuple(rules)


def describe_cover(rules: Sequence[Rule]) -> str:
    """Return what else rules would cover, in a sentence for the person who is asked."""
    parts = []
    for rule in rules:
        if rule.kind == "shell":
            parts.append(f"every `{rule.argument}` command, whatever its arguments")
        elif rule.kind == "write":
            parts.append("every change of files in the allowed directories")
        elif rule.kind == "read":
            parts.append(f"every reading of {rule.argument}")
        elif rule.kind == "memory":
            parts.append("everything that is put into memory")
        elif rule.kind == "custom-tool":
            parts.append(f"every call of {rule.argument}")
        elif rule.kind == "url":
            parts.append(f"every address that begins with {rule.argument}")
        else:
            parts.append(f"every call of {rule.argument or 'any tool'} of {rule.kind}")
    return "; ".join(parts) + "." if parts else ""


def offer_rules(request: JsonObject, text: str) -> tuple[JsonObject, JsonObject]:
    """Return a request for a command that offers the rules a person wrote, and what they cover.

    Raises `UsageError` for rules that cannot be read or are not about commands.
    """
    import re

    from trimtab.contracts.errors import UsageError
    from trimtab.permissions.rules import parse_rules

    rules = parse_rules(re.findall(r"[^,()]+\([^()]*\)|[^,\s][^,]*", text), "session")
    names = [rule.argument for rule in rules if rule.kind == "shell" and rule.argument]
    if not rules or len(names) < len(rules):
        raise UsageError("Only rules for commands can be written here, such as shell(git:*).")
    offered = {
        "suggestedRules": [str(rule) for rule in rules],
        "suggestedRulesCover": describe_cover(rules),
    }
    return request | offered, {"kind": "commands", "commandIdentifiers": names}
