"""Submits a finished plan for approval, and leaves plan mode when it is approved."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.events.question import ExitPlanModeCompleted, ExitPlanModeRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.questions import PlanReady, PlanVerdict
from trimtab.contracts.run import Prompt

if TYPE_CHECKING:
    from trimtab.contracts.run import Mode
    from trimtab.runtime.live import LiveSession

FLEET = "autopilot_fleet"
Decide = Callable[[str], Awaitable[PlanVerdict]]
"""Takes the text of the plan, or its summary if it has no file, and returns the verdict."""


async def present_plan(live: "LiveSession", plan: PlanReady, decide: Decide) -> PlanVerdict:
    """Emit the request, await the verdict, and leave plan mode if the plan is approved.

    The verdict is that of `decide`, or one that a client gave by the request's id before.
    """
    content = live.folder.read_plan() or ""
    request = ExitPlanModeRequested(
        request_id=new_id(),
        summary=plan.summary,
        plan_content=content,
        actions=list(plan.actions),
        recommended_action=plan.recommended,
        model=live.model or None,
    )
    live.emit(request)
    answer = await live.questions.first_answer(request, lambda: decide(content or plan.summary))
    verdict = read_verdict(answer)
    live.emit(
        ExitPlanModeCompleted(
            request_id=request.request_id,
            approved=verdict.approved,
            selected_action=verdict.action if verdict.approved else None,
            feedback=verdict.feedback,
            auto_approve_edits=verdict.auto_approve_edits or None,
        )
    )
    if verdict.approved:
        edited = live.folder.read_plan()
        if edited is not None and edited != content:
            verdict = msgspec.structs.replace(verdict, edited_plan=edited)
        autopilot = str(verdict.action).startswith("autopilot")
        live.controls.set_mode("autopilot" if autopilot else "interactive")
        if verdict.auto_approve_edits:
            given = live.controls.options.permissions
            allow = (*given.allow, "write")
            live.controls.set_permissions(msgspec.structs.replace(given, allow=allow))
        if verdict.action == FLEET and await start_fleet(live, edited or content or plan.summary):
            verdict = msgspec.structs.replace(verdict, by_fleet=True)
    return verdict


def read_verdict(answer: Any) -> PlanVerdict:
    """Return the verdict in an answer; one that cannot be read approves nothing.

    Who approves a plan and chooses no action wants to be asked before changes.
    """
    if isinstance(answer, PlanVerdict):
        return answer
    fields = answer if isinstance(answer, dict) else {}
    return PlanVerdict(
        approved=fields.get("approved") is True,
        action=fields.get("selectedAction") or None,
        feedback=fields.get("feedback"),
        auto_approve_edits=fields.get("autoApproveEdits") is True,
    )


async def start_fleet(live: "LiveSession", plan: str) -> bool:
    """Let a fleet carry out an approved plan; return False if it cannot, and say why."""
    if live.start_fleet is None:
        return False
    try:
        await live.start_fleet(live, Prompt(text=plan, billable=False))
    except TrimtabError as error:
        live.inform("fleet", f"No fleet carries out the plan: {error.message}")
        return False
    return True


CARRY_OUT = (
    "The plan is approved. Carry it out now, and check the outcome.\n\n<plan>\n{plan}\n</plan>"
)


async def carry_out_plan(live: "LiveSession", mode: "Mode") -> None:
    """Approve the plan of a run without a person, and send it as the next prompt.

    The plan is what its file holds now, whoever wrote that; without one, the last answer.
    """
    plan = live.folder.read_plan() or live.answer

    async def approve(_content: str) -> PlanVerdict:
        return PlanVerdict(approved=True, action=mode)

    await present_plan(live, PlanReady(summary=plan, actions=(mode,), recommended=mode), approve)
    live.send(Prompt(text=CARRY_OUT.format(plan=plan), source="plan", billable=False))
