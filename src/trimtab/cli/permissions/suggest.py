"""Suggests rules that would have saved questions, from the answers in past sessions."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trimtab.config.paths import find_home

_TYPES = (b'"permission.requested"', b'"permission.completed"')


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and how many questions it would have answered."""

    rule: str
    approvals: int


def suggest(env: Mapping[str, str], *, least: int = 2) -> list[Suggestion]:
    """Return rules for requests that were approved at least this often and never rejected."""
    approved: Counter[str] = Counter()
    rejected: set[str] = set()
    for request, outcome in _answers(find_home(env).session_state):
        rules = _rules_for(request)
        if outcome.startswith("approved"):
            approved.update(rules)
        elif outcome == "denied-interactively-by-user":
            rejected.update(rules)
    return [
        Suggestion(rule=rule, approvals=count)
        for rule, count in approved.most_common()
        if count >= least and rule not in rejected
    ]


def _answers(folder: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every answered request of all sessions, with its outcome."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        open_requests: dict[str, dict[str, Any]] = {}
        for event in _events(os.path.join(folder, name, "events.jsonl")):
            data = event.get("data", {})
            request_id = data.get("requestId", "")
            if event["type"] == "permission.requested":
                open_requests[request_id] = data.get("permissionRequest", {})
            elif request_id in open_requests:
                outcome = str(data.get("result", {}).get("kind", ""))
                yield open_requests.pop(request_id), outcome


def _events(path: str) -> Iterator[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            for line in file:
                if not any(name in line for name in _TYPES):
                    continue
                try:
                    event = msgspec.json.decode(line)
                except msgspec.DecodeError:
                    continue
                if isinstance(event, dict) and str(event.get("type")).startswith("permission."):
                    yield event
    except OSError:
        return


def _rules_for(request: dict[str, Any]) -> list[str]:
    """Return the rules that would cover a request; none if no rule could."""
    match request:
        case {"kind": "shell", "canOfferSessionApproval": True, "commands": list(commands)}:
            names = [part["identifier"] for part in commands if not part.get("readOnly")]
            return [f"shell({name})" for name in dict.fromkeys(names)]
        case {"kind": "mcp", "serverName": str(server), "toolName": str(tool)}:
            return [f"{server}({tool})"]
        case {"kind": "write" | "memory" as kind}:
            return [kind]
        case {"kind": "custom-tool", "toolName": str(tool)}:
            return [tool]
        case _:
            return []
