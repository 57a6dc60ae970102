"""Questions a session puts to one client: words, a plan's approval, another model."""

from typing import TYPE_CHECKING, Any

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.question import (
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    UserInputCompleted,
    UserInputRequested,
)
from trimtab.contracts.events.session import SessionError
from trimtab.contracts.ids import new_id
from trimtab.contracts.questions import PlanReady, PlanVerdict, Question, Response
from trimtab.host.ports import ClientError
from trimtab.runtime.plan_approval import present_plan

if TYPE_CHECKING:
    from trimtab.host.hosted import HostedSession


async def ask_person(hosted: "HostedSession", question: Question) -> Response | None:
    """A person's answer; None if nobody gives one."""
    request_id = new_id()
    params: JsonObject = {"question": question.text, "allowFreeform": question.allow_freeform}
    if question.choices:
        params["choices"] = list(question.choices)
    hosted.live.emit(
        UserInputRequested(
            request_id=request_id,
            question=question.text,
            choices=list(question.choices) or None,
            allow_freeform=question.allow_freeform,
            tool_call_id=question.call_id or None,
        )
    )
    reply: Any = None
    try:
        reply = await hosted.first(
            request_id,
            lambda: hosted.ask_one("request_user_input", "userInput.request", params),
        )
    except ClientError:
        return None
    finally:
        said = reply if isinstance(reply, dict) else {}
        freeform = bool(said.get("wasFreeform", said.get("answer") not in question.choices))
        hosted.live.emit(
            UserInputCompleted(
                request_id=request_id, answer=said.get("answer"), was_freeform=freeform
            )
        )
    if not isinstance(said.get("answer"), str):
        return None
    return Response(text=said["answer"], freeform=freeform)


async def ask_approval(hosted: "HostedSession", plan: PlanReady) -> PlanVerdict:
    """Ask a client what becomes of a plan."""

    async def decide(request_id: str, content: str) -> PlanVerdict:
        params: JsonObject = {
            "summary": plan.summary,
            "planContent": content,
            "actions": list(plan.actions),
            "recommendedAction": plan.recommended,
        }
        reply: Any = None
        try:
            reply = await hosted.first(
                request_id,
                lambda: hosted.ask_one("request_exit_plan_mode", "exitPlanMode.request", params),
            )
        except ClientError as error:
            reply = {"approved": False, "feedback": error.message}
        said = reply if isinstance(reply, dict) else {}
        return PlanVerdict(
            approved=said.get("approved") is True,
            action=said.get("selectedAction") or plan.recommended,
            feedback=said.get("feedback"),
        )

    return await present_plan(hosted.live, plan, decide)


async def ask_mode_switch(hosted: "HostedSession", error: ModelError) -> bool:
    """Whether a client wants to go on with the model the service chooses; False without one."""
    if not hosted.able("request_auto_mode_switch"):
        return False
    live, request_id = hosted.live, new_id()
    error.reported = True
    live.emit(
        SessionError(
            error_type=error.error_type,
            message=error.message,
            status_code=error.status,
            error_code=error.code,
            eligible_for_auto_switch=True,
        )
    )
    wait = int(error.retry_after) if error.retry_after else None
    live.emit(
        AutoModeSwitchRequested(
            request_id=request_id, error_code=error.code, retry_after_seconds=wait
        )
    )
    params: JsonObject = {"errorCode": error.code, "retryAfterSeconds": wait}
    said: Any = None
    try:
        said = await hosted.first(
            request_id,
            lambda: hosted.ask_one(
                "request_auto_mode_switch",
                "autoModeSwitch.request",
                {name: value for name, value in params.items() if value is not None},
            ),
        )
    except ClientError:
        said = None
    response = said.get("response") if isinstance(said, dict) else said
    response = response if response in ("yes", "yes_always") else "no"
    live.emit(AutoModeSwitchCompleted(request_id=request_id, response=response))
    if response == "no":
        return False
    live.controls.set_model("auto", cause="rate_limit_auto_switch")
    return True
