"""Questions of a session to its client: permissions and plans."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import PlanReady, PlanVerdict
from trimtab.host.plan_actions import PLAN_ACTIONS, list_actions
from trimtab.permissions.approvals import approve_bundle, describe_bundle, holds_everywhere
from trimtab.permissions.kinds import show_request
from trimtab.tools.splice import Splice, plan_edit
from trimtab.transports.acp.connection import Connection
from trimtab.transports.acp.protocol import AcpError, ClientLeft
from trimtab.transports.acp.schema import Outcome, PermissionAnswer
from trimtab.transports.acp.tool_calls import MAX_DIFF, fence, text_content

ReadFile = Callable[[str], Awaitable[bytes | None]]
"""Returns a file as the editor has it; None if there is none."""
FENCES = {"command": "sh", "diff": "diff", "json": "json"}
"""The language of the code block for each form of a request."""
DENIED = Answer(kind="user-not-available")
ANSWERS = {
    "allow_once": "approve-once",
    "allow_always": "approve-for-location",
    "allow_everywhere": "approve-permanently",
    "reject_once": "reject",
    "reject_always": "reject",
}
BUNDLES = {"allow_checks": "bundle", "allow_everyday": "everyday"}
"""The options that allow a bundle of rules, and the fields of a request that hold it."""
REMEMBERED_ACTIONS = ("autopilot",)
"""The actions after a plan that hold for more than the next call."""


class PermissionDesk:
    """Asks the client for permissions, and remembers what the person always rejects."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self._session_id = session_id
        self._rejected: set[str] = set()

    async def ask(self, request: JsonObject, call: JsonObject) -> Answer:
        """Return the client's answer. No usable answer is a denial."""
        rules = find_rules(request)
        if rules and self._rejected.issuperset(rules):
            feedback = "They said to always reject this in this session."
            return Answer(kind="reject", feedback=feedback)
        options = build_options(request)
        outcome = await self._request(call, options)
        chosen = outcome.option_id if outcome.outcome == "selected" else ""
        if chosen not in {option["optionId"] for option in options}:
            return DENIED
        if chosen == "reject_always":
            self._rejected.update(rules)
        if field := BUNDLES.get(chosen):
            return approve_bundle(request, field)
        return Answer(kind=ANSWERS[chosen])

    async def ask_plan(self, plan: PlanReady, content: str, call: JsonObject) -> PlanVerdict:
        """Return the client's verdict on a plan, which is asked as a switch of the mode."""
        options = [
            {
                "optionId": action,
                "name": f"{PLAN_ACTIONS[action][:1].upper()}{PLAN_ACTIONS[action][1:]}",
                "kind": "allow_always" if action in REMEMBERED_ACTIONS else "allow_once",
            }
            for action in list_actions(plan.actions)
        ]
        stay = {"optionId": "stay", "name": "Stay in plan mode", "kind": "reject_once"}
        shown = {**call, "kind": "switch_mode", "content": [text_content(content)]}
        outcome = await self._request(shown, [*options, stay])
        approved = outcome.outcome == "selected" and outcome.option_id in plan.actions
        return PlanVerdict(approved=approved, action=outcome.option_id if approved else None)

    async def _request(self, call: JsonObject, options: Sequence[JsonObject]) -> Outcome:
        params: JsonObject = {
            "sessionId": self._session_id,
            "toolCall": call,
            "options": list(options),
        }
        try:
            reply = await self._connection.ask("session/request_permission", params)
            return msgspec.convert(reply, PermissionAnswer).outcome
        except (AcpError, ClientLeft, msgspec.ValidationError):
            return Outcome()


def find_rules(request: JsonObject) -> list[str]:
    """Return the rules that cover a request; for one that no rule covers, the call itself."""
    rules = request.get("suggestedRules")
    if isinstance(rules, list) and rules:
        return [str(rule) for rule in rules]
    if request.get("kind") == "url":
        return [f"url({request.get('url')})"]
    return [str(request.get("digest") or "")]


def build_options(request: JsonObject) -> list[JsonObject]:
    """Return the answers a person can give, each named for its effect."""
    rules = find_rules(request)
    options: list[JsonObject] = [
        {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"}
    ]
    named = "this"
    if request.get("suggestedRules") or request.get("kind") == "url":
        named = ", ".join(rules)
        name = f"Always allow {named} in this folder"
        options.append({"optionId": "allow_always", "name": name, "kind": "allow_always"})
    if holds_everywhere(request):
        name = f"Always allow {named} in every folder"
        options.append({"optionId": "allow_everywhere", "name": name, "kind": "allow_always"})
    for option, field in BUNDLES.items():
        if bundle := request.get(field):
            listed = describe_bundle(bundle)
            end = f": {listed}" if listed else ""
            name = f"Always allow {bundle['title']} in this folder{end}"
            options.append({"optionId": option, "name": name, "kind": "allow_always"})
    always = f"Always reject {named} in this session"
    return [
        *options,
        {"optionId": "reject_once", "name": "Reject once", "kind": "reject_once"},
        {"optionId": "reject_always", "name": always, "kind": "reject_always"},
    ]


async def describe_request(request: JsonObject, arguments: Any, read: ReadFile) -> list[JsonObject]:
    """Return the content that shows what is asked for: the command, or the diff.

    `arguments` are those of the call that needs the permission.
    """
    shown = show_request(request)
    content: list[JsonObject] = []
    if request.get("kind") == "write":
        content += await show_write(request, arguments, read)
    elif shown.form in FENCES:
        content.append(text_content(fence(shown.text, FENCES[shown.form])))
    else:
        content.append(text_content(shown.text or shown.question))
    if warning := request.get("warning"):
        content.append(text_content(f"Warning: {warning}"))
    return content


async def show_write(request: JsonObject, arguments: Any, read: ReadFile) -> list[JsonObject]:
    """Return the diff of a write that waits for permission."""
    path, text = str(request.get("fileName") or ""), request.get("newFileContents")
    before = await read(path) if path else None
    if before is not None and isinstance(arguments, dict) and "old_str" in arguments:
        new = str(arguments.get("new_str") or "")
        planned = plan_edit(before, str(arguments["old_str"]), new)
        text = planned.data.decode("utf-8", "replace") if isinstance(planned, Splice) else text
    if path and isinstance(text, str) and text and len(before or b"") <= MAX_DIFF:
        diff: JsonObject = {"type": "diff", "path": path, "newText": text}
        return [diff if before is None else {**diff, "oldText": before.decode("utf-8", "replace")}]
    if diff_text := request.get("diff"):
        return [text_content(fence(str(diff_text), "diff"))]
    return []
