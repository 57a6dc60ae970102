"""Describes the answers that people gave to questions, told from the log live and on resume."""

from trimtab.contracts.text import neutralise
from trimtab.host.parts import Question, ToolInvocation
from trimtab.host.plan_actions import PLAN_ACTIONS
from trimtab.permissions.kinds import show_request

OUTCOMES = {
    "approved": "yes, once",
    "approved-for-session": "yes, in this session",
    "approved-for-location": "yes, always in this folder",
    "denied-interactively-by-user": "no",
}
"""The answers to permission questions, in the words of their choices."""
PLAN_TITLE = "Carry out this plan?"
STAY = "stay in plan mode"
_FEEDBACK, _AFTER = "User feedback:\n\n", "\n\nChange the plan"
_PLAN_RESULTS = (
    ("Stop here.", "exit_only"),
    ("A fleet of agents", "autopilot_fleet"),
    ("Do independent parts of it at once", "autopilot_fleet"),
    ("You are now in autopilot mode", "autopilot"),
    ("You are now in interactive mode", "interactive"),
)
"""Texts in the results of `exit_plan_mode`, and the actions that they tell of."""

OUTDATED = frozenset(("prompts_held",))
"""Warnings at the opening of a session that its past does not repeat: what waited may be sent."""


def describe_permission(question: Question) -> str:
    """Return a permission question and its answer; empty if no person has answered it."""
    if question.kind != "permission" or question.answer not in OUTCOMES:
        return ""
    asked = neutralise(show_request(question.request).question, "approval")
    words = " ".join(neutralise(question.words).split())
    return f"{asked} — {OUTCOMES[question.answer]}{f': {words}' if words else ''}"


def describe_exchange(call: ToolInvocation) -> str:
    """Return the question that a call put to the person, and the answer; empty if it put none."""
    if call.state != "completed" or call.name not in ("ask_user", "exit_plan_mode"):
        return ""
    if call.name == "exit_plan_mode":
        return f"{PLAN_TITLE} — {neutralise(_read_verdict(call.output))}"
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    asked = str(arguments.get("question") or call.title).strip().split("\n")[0]
    answer = call.output.strip()
    for told in ("User responded: ", "User selected: "):
        answer = answer.removeprefix(told)
    return neutralise(f"{asked} — {answer}")


def _read_verdict(result: str) -> str:
    """Return what was decided about a plan, in the words of the choice or the person's own."""
    for text, action in _PLAN_RESULTS:
        if result.startswith("Plan approved") and text in result:
            return PLAN_ACTIONS[action]
    return result.partition(_FEEDBACK)[2].rpartition(_AFTER)[0].strip() or STAY
