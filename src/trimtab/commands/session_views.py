"""Views of a live session as text, for commands: its diff, skills, servers, agents, permissions."""

import difflib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trimtab.contracts.events.envelope import JsonObject
from trimtab.session.records import read_records
from trimtab.undo.changes import read_changes
from trimtab.undo.own_changes import OwnChange, list_own_changes

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


def describe_diff(live: "LiveSession") -> str:
    """Return the session's own changes to files as a unified diff."""
    store, root = live.recorder.store, live.controls.options.cwd
    recorded = read_changes(read_records(live.folder.events), store)
    pieces = [
        line for change in list_own_changes(recorded, store) for line in _compare(change, root)
    ]
    return "\n".join(pieces) or "This session has changed no files."


def _compare(change: OwnChange, root: str) -> Iterator[str]:
    name = os.path.relpath(change.path, root)
    before, after = _lines(change.before), _lines(change.after)
    yield f"diff --git a/{name} b/{name}"
    if before is None or after is None:
        yield f"{name}: too large, or not text"
        return
    if change.mixed:
        yield "also changed by others in the same lines"
    yield from difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")


def _lines(data: bytes | None) -> list[str] | None:
    """Return the lines of a text; None if they cannot be shown."""
    if data is None or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").splitlines()


def describe_skills(live: "LiveSession") -> str:
    """Return the skills and prompt files that can be called by name."""
    custom = live.controls.setup.customizations
    skills = custom.skills.active if custom is not None else ()
    lines = [
        f"/{skill.name}  {skill.description}" if skill.user_invocable else f"{skill.name} (model)"
        for skill in skills
    ]
    return "\n".join(lines) or "No skills are loaded."


def describe_servers(live: "LiveSession") -> str:
    """Return the MCP servers of the session with their states."""
    lines = [
        f"{server.get('name')}: {server.get('status')}"
        + (f" ({server['error']})" if server.get("error") else "")
        for server in live.controls.servers.describe()
    ]
    return "\n".join(lines) or "No MCP servers are configured; add one with `trimtab mcp add`."


def describe_tasks(live: "LiveSession") -> str:
    """Return the sub-agents and commands of the session."""
    lines = [describe_task(task) for task in live.tasks.describe()]
    return "\n".join(lines) or "No agents or commands are running."


def describe_task(task: JsonObject) -> str:
    """Return a task as one line."""
    about = task.get("description") or task.get("command") or task.get("prompt") or ""
    status = "interrupted" if task.get("interrupted") else task.get("status", "")
    kind = task.get("agentType") or task.get("type", "")
    spent = describe_spending(task)
    return (
        f"{task.get('id', '')}  {status}  {kind}  {f'{spent}  ' if spent else ''}"
        f"{' '.join(str(about).split())}"
    )


def describe_spending(task: JsonObject) -> str:
    """Return what an agent has used of its budget; empty if it has neither used nor got any."""
    used, limit = task.get("tokensUsed"), task.get("maxTokens")
    parts = []
    if limit is not None:
        parts.append(f"{describe_tokens(used or 0)} of {describe_tokens(limit)} tokens")
    elif used:
        parts.append(f"{describe_tokens(used)} tokens")
    usd, most = task.get("usdUsed"), task.get("maxUsd")
    if most is not None:
        parts.append(f"${usd or 0:.2f} of ${most:.2f}")
    elif usd:
        parts.append(f"${usd:.2f}")
    return ", ".join(parts)


def describe_tokens(tokens: int) -> str:
    """Return a number of tokens for people: `4,200`, `34k`, `1.2m`."""
    if tokens < 10_000:
        return f"{tokens:,}"
    return f"{tokens // 1000}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}m"


def list_rules(live: "LiveSession") -> list[tuple[str, str, str]]:
    """Return the rules of this session: the verdict, the rule, and where it comes from."""
    policy = live.controls.agent.parts.permissions.policy
    return [
        (verdict, str(rule), str(rule.source))
        for verdict, rules in (("deny", policy.deny), ("ask", policy.ask), ("allow", policy.allow))
        for rule in rules
    ]


def describe_permissions(live: "LiveSession") -> str:
    """Return the rules that decide about actions in this session."""
    lines = [f"{verdict:<6}{rule}  ({source})" for verdict, rule, source in list_rules(live)]
    if live.controls.agent.parts.permissions.policy.allow_all_tools:
        lines.append("allow everything (--allow-all-tools)")
    return "\n".join(lines) or "No rules: what changes something is asked about."
