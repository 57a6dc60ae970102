"""Submits a finished plan for approval, and leaves plan mode when it is approved."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from trimtab.contracts.events.question import ExitPlanModeCompleted, ExitPlanModeRequested
from trimtab.contracts.ids import new_id

if TYPE_CHECKING:
    from trimtab.contracts.questions import PlanReady, PlanVerdict
    from trimtab.runtime.live import LiveSession

Decide = Callable[[str, str], Awaitable["PlanVerdict"]]
"""Takes the request id and the text of the plan, and returns the verdict."""


async def present_plan(live: "LiveSession", plan: "PlanReady", decide: Decide) -> "PlanVerdict":
    """Emit the request, await the verdict, and leave plan mode if the plan is approved."""
    request_id = new_id()
    content = live.folder.read_plan() or plan.summary
    live.emit(
        ExitPlanModeRequested(
            request_id=request_id,
            summary=plan.summary,
            plan_content=content,
            actions=list(plan.actions),
            recommended_action=plan.recommended,
        )
    )
    verdict = await decide(request_id, content)
    live.emit(
        ExitPlanModeCompleted(
            request_id=request_id,
            approved=verdict.approved,
            selected_action=verdict.action if verdict.approved else None,
            feedback=verdict.feedback,
        )
    )
    if verdict.approved:
        autopilot = str(verdict.action).startswith("autopilot")
        live.controls.set_mode("autopilot" if autopilot else "interactive")
    return verdict
