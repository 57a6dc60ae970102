"""Questions to a person as text; control characters in foreign text are made visible."""

from typing import TYPE_CHECKING, Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.permission import Answer
from trimtab.contracts.questions import TrustQuestion
from trimtab.contracts.text import count, neutralise
from trimtab.host.plan_actions import PLAN_ACTIONS, list_actions
from trimtab.permissions.approvals import (
    BUNDLES,
    approve_bundle,
    describe_bundle,
    holds_everywhere,
)
from trimtab.permissions.kinds import show_request

if TYPE_CHECKING:
    from trimtab.contracts.questions import PlanReady, Question

MIN_FEEDBACK = 3
"""Characters; a shorter text is a mistyped answer and not feedback for the agent."""
_ANSWERS = {
    **dict.fromkeys(("1", "y", "yes"), "approve-once"),
    **dict.fromkeys(("2", "s"), "approve-for-session"),
    **dict.fromkeys(("3", "a"), "approve-for-location"),
    **dict.fromkeys(("4", "n", "no"), "reject"),
    "6": "approve-permanently",
}
MAX_LENGTH = 4000
MAX_ITEMS = 20


def describe_request(request: JsonObject, *, edits: bool = False) -> str:
    """Return a permission question: what would happen, and what each answer allows.

    With `edits` the person may write the rule themselves.
    """
    lines = _describe_access(request)
    reason, warning = str(request.get("reason") or ""), str(request.get("warning") or "")
    if reason:
        lines.append(f"  why: {_show(reason)}")
    if warning and warning not in reason:
        lines.append(f"  ! {_show(warning)}")
    lines.append("")
    lines.append("  1  yes, once (or y)")
    if rules := request.get("suggestedRules"):
        named = ", ".join(_show(rule) for rule in rules)
        lines.append(f"  2  yes, allow {named} in this session")
        lines.append(f"  3  yes, allow {named} always in this folder")
        lines.append(f"     that covers {_show(request.get('suggestedRulesCover', ''))}")
        if holds_everywhere(request):
            lines.append("  6  the same always in every folder")
        if edits and may_edit_rules(request):
            lines.append("  e  edit the rule")
    for key, field in BUNDLES.items():
        if bundle := request.get(field):
            listed = describe_bundle(bundle)
            end = f":\n     {_show(listed)}" if listed else ""
            lines.append(f"  {key}  yes, allow {_show(bundle['title'])} always in this folder{end}")
    lines.append("  4  no (or n); or type what to do instead")
    return "\n".join(lines) + "\n"


def read_answer(reply: str, request: JsonObject, approval: JsonObject | None) -> Answer | None:
    """Return the answer in a line that a person typed; None if it is mistyped.

    `approval` is what a rule that they wrote themselves covers.
    """
    field = BUNDLES.get(reply.lower(), "")
    if request.get(field):
        return approve_bundle(request, field)
    kind = _ANSWERS.get(reply.lower(), "")
    if kind.startswith("approve-for") and not request.get("suggestedRules"):
        return None
    if kind == "approve-permanently" and not holds_everywhere(request):
        return None
    if kind:
        lasts = kind.startswith("approve-") and kind != "approve-once"
        return Answer(kind=kind, approval=approval if lasts else None)
    return Answer(kind="reject", feedback=reply) if len(reply) >= MIN_FEEDBACK else None


def name_answers(request: JsonObject, *, edits: bool = False) -> str:
    """Return the keys that answer a request."""
    keys = ["1", "2", "3", "4"] if request.get("suggestedRules") else ["1", "4"]
    keys += ["e"] if edits and may_edit_rules(request) else []
    keys += [key for key, field in BUNDLES.items() if request.get(field)]
    keys += ["6"] if holds_everywhere(request) else []
    return ", ".join(keys)


def may_edit_rules(request: JsonObject) -> bool:
    """Return True if the person may write the rule for a request themselves."""
    if request.get("sandboxBypass"):
        return False
    return request.get("kind") == "shell" and bool(request.get("suggestedRules"))


def _describe_access(request: JsonObject) -> list[str]:
    shown = show_request(request)
    mark = "$ " if shown.form == "command" else ""
    return [_show(shown.question), *_indent(shown.text, mark)]


def describe_question(question: "Question") -> str:
    """Return a question of the agent with numbered choices."""
    choices = [f"  {n}  {_show(choice)}" for n, choice in enumerate(question.choices, 1)]
    return "\n".join([_show(question.text), *choices]) + "\n"


MAX_PLAN = 40_000


def plan_choices(plan: "PlanReady") -> list[str | None]:
    """Return the actions a person can choose for a plan; None means: stay in plan mode."""
    return [*list_actions(plan.actions), None]


def describe_plan(plan: "PlanReady", content: str) -> str:
    """Return a finished plan with numbered actions."""
    lines = ["The plan:", "", *_indent(content, limit=MAX_PLAN), ""]
    for number, action in enumerate(plan_choices(plan), 1):
        text = PLAN_ACTIONS[action] if action else "stay in plan mode"
        mark = " (recommended)" if action and action == plan.recommended else ""
        lines.append(f"  {number}  {text}{mark}")
    return "\n".join([*lines, "     or type what to change", ""])


def describe_trust(question: TrustQuestion) -> str:
    """Return the question whether to trust a folder."""
    head = f"Do you trust {_show(question.folder)}? It would load:"
    if question.changed:
        head = f"In {_show(question.folder)}, which you trusted, this is new or changed:"
    items = [f"  {item.kind:<10} {_show(item.path)}" for item in question.items[:MAX_ITEMS]]
    if len(question.items) > MAX_ITEMS:
        items.append(f"  … and {len(question.items) - MAX_ITEMS} more")
    answers = (
        "  1  yes, and remember it (or y)\n  2  yes, for now\n  4  no, go on without it (or n)\n"
    )
    return "\n".join([head, *items, "", answers])


def _indent(text: Any, mark: str = "", limit: int = MAX_LENGTH) -> list[str]:
    lines = _show(text, limit).split("\n")
    if lines == [""]:
        return []
    return [
        f"  {mark if index == 0 else ' ' * len(mark)}{line}" for index, line in enumerate(lines)
    ]


def _show(text: Any, limit: int = MAX_LENGTH) -> str:
    shown = neutralise(str(text or ""), "approval")
    if len(shown) <= limit:
        return shown
    return f"{shown[:limit]}\n… {count(len(shown) - limit, 'more character')}"
