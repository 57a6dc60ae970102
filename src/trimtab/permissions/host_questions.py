"""Asks once about each new host that a sandboxed command wants to reach."""

import asyncio
from collections.abc import Callable, Sequence

from trimtab.contracts.events.envelope import EventData, JsonObject
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.permission import Policy, Rule
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import describe_cover
from trimtab.permissions.processor import Permissions
from trimtab.permissions.rules import matches_address

HOSTS = "the hosts this project is fetched and built from"
_SCHEMES = {80: "http", 443: "https"}


class HostQuestions:
    """Decides by rules that name the host, else by a person; without one the answer is no.

    An answer holds for the whole command; a person may let it hold for the session or the folder.
    """

    def __init__(self, permissions: Permissions, emit: Callable[[EventData], object]) -> None:
        self._permissions = permissions
        self._emit = emit
        self._answers: dict[tuple[str, int, str], asyncio.Task[bool]] = {}

    async def ask(self, host: str, port: int, call_id: str) -> bool:
        """Return True if the command of a call may connect to a host."""
        key = host, port, call_id
        if key not in self._answers:
            access = Access(kind="url", target=write_address(host, port), mutates=False)
            self._answers[key] = asyncio.create_task(self._decide(access, host, call_id))
        return await asyncio.shield(self._answers[key])

    async def _decide(self, access: Access, host: str, call_id: str) -> bool:
        policy, address = self._permissions.policy, access.target
        if any(matches_address(rule, address, denies=True) for rule in policy.deny):
            return False
        if any(matches_address(rule, address) for rule in policy.allow):
            return True
        request_id = new_id()
        request = build_host_request(access, host, call_id)
        if hosts := find_missing(address, self._permissions.find_hosts(), policy):
            request["bundle"] = {"title": HOSTS, "rules": hosts}
        self._emit(PermissionRequested(request_id=request_id, permission_request=request))
        answer = await self._permissions.ask_person(request_id, request)
        self._emit(
            PermissionCompleted(
                request_id=request_id,
                tool_call_id=call_id,
                result=self._permissions.settle(access, answer),
                decision_source="human_response",
            )
        )
        return answer.kind.startswith("approve")


def write_address(host: str, port: int) -> str:
    """Return a host and port as the address that rules name."""
    name = f"[{host}]" if ":" in host else host
    return f"{_SCHEMES[port]}://{name}" if port in _SCHEMES else f"https://{name}:{port}"


def find_missing(address: str, known: Sequence[str], policy: Policy) -> list[str]:
    """Return rules for all known hosts, if the host asked about is one of several still missing."""
    allowed = [rule for rule in policy.allow if rule.kind == "url"]
    missing = [host for host in known if not any(matches_address(rule, host) for rule in allowed)]
    if address not in missing or len(missing) == 1:
        return []
    return [str(Rule("url", host)) for host in missing]


def build_host_request(access: Access, host: str, call_id: str) -> JsonObject:
    rule = Rule("url", access.target, "session")
    return {
        "kind": "url",
        "toolCallId": call_id,
        "intention": f"Connect to {host}",
        "url": access.target,
        "reason": f"A command in the sandbox wants to connect to {host}.",
        "suggestedRules": [str(rule)],
        "suggestedRulesCover": describe_cover((rule,)),
    }
