"""Questions that a session asks one client: free text, approval of a plan, a switch of model."""

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.question import (
    AutoModeSwitchCompleted,
    AutoModeSwitchRequested,
    ElicitationCompleted,
    ElicitationRequested,
    McpOauthCompleted,
    McpOauthRequired,
    SamplingCompleted,
    SamplingRequested,
    SessionLimitsExhaustedCompleted,
    SessionLimitsExhaustedRequested,
)
from trimtab.contracts.events.session import SessionError
from trimtab.contracts.ids import new_id
from trimtab.contracts.provider import CREDIT_USD
from trimtab.contracts.questions import (
    Form,
    PlanReady,
    PlanVerdict,
    Question,
    Response,
    SamplingQuestion,
    TokenRequest,
)
from trimtab.host.person_questions import present_question
from trimtab.host.plan_approval import present_plan, read_verdict
from trimtab.host.ports import ClientError

if TYPE_CHECKING:
    from trimtab.host.hosted import HostedSession


TOKEN_SECONDS = 600.0
"""The time that a client has to obtain a token."""


async def ask_person(hosted: "HostedSession", question: Question) -> Response | None:
    """Return the person's answer, or None if the client has none."""
    params: JsonObject = {"question": question.text, "allowFreeform": question.allow_freeform}
    if question.choices:
        params["choices"] = list(question.choices)
    try:
        return await present_question(
            hosted.live,
            question,
            lambda: hosted.ask_any_client("request_user_input", "userInput.request", params),
        )
    except ClientError:
        return None


async def ask_form(hosted: "HostedSession", form: Form) -> JsonObject | None:
    """Return the answer of the first client that shows a form; None if none shows forms.

    Without a client that a person can answer through, a form is declined.
    """
    if not hosted.supports("request_elicitation"):
        return None if hosted.supports("request_user_input") else {"action": "decline"}
    request = ElicitationRequested(
        request_id=new_id(),
        message=form.message,
        elicitation_source=form.source,
        mode=form.mode,
        requested_schema=form.schema or None,
        url=form.url or None,
    )
    return await show_form(hosted, request)


async def show_form(hosted: "HostedSession", request: ElicitationRequested) -> JsonObject:
    """Show a form in every client that can; return the first answer."""
    fields: JsonObject = {"action": "cancel"}
    try:
        answer = await hosted.ask_by_event(request)
        fields = answer if isinstance(answer, dict) else fields
    finally:
        hosted.live.emit(
            ElicitationCompleted(
                request_id=request.request_id,
                action=fields.get("action"),
                content=fields.get("content"),
            )
        )
    return fields


async def ask_token(hosted: "HostedSession", request: TokenRequest) -> JsonObject | None:
    """Return the token that a client obtained; None if no client supplies tokens or it has none."""
    if McpOauthRequired.wire_name not in hosted.interests.values():
        return None
    challenge = {
        "resourceMetadataUrl": request.resource_metadata,
        "scope": request.scope,
        "error": request.error,
    }
    required = McpOauthRequired(
        request_id=new_id(),
        server_name=request.server,
        server_url=request.url,
        reason=request.reason,
        static_client_config=request.client or None,
        www_authenticate_params={name: text for name, text in challenge.items() if text} or None,
    )
    fields: JsonObject = {}
    try:
        async with asyncio.timeout(TOKEN_SECONDS):
            answer = await hosted.ask_by_event(required)
        fields = answer if isinstance(answer, dict) else {}
    except TimeoutError:
        return None
    finally:
        has_token = fields.get("kind") == "token"
        outcome = "token" if has_token else "cancelled"
        hosted.live.emit(McpOauthCompleted(request_id=required.request_id, outcome=outcome))
    return fields if has_token else None


async def ask_approval(hosted: "HostedSession", plan: PlanReady) -> PlanVerdict:
    """Return a client's verdict on a plan."""

    async def decide(_: str) -> PlanVerdict:
        params: JsonObject = {
            "summary": plan.summary,
            "planContent": hosted.live.folder.read_plan() or "",
            "actions": list(plan.actions),
            "recommendedAction": plan.recommended,
        }
        try:
            reply = await hosted.ask_any_client(
                "request_exit_plan_mode", "exitPlanMode.request", params
            )
        except ClientError as error:
            return PlanVerdict(approved=False, action=plan.recommended, feedback=error.message)
        return read_verdict(reply)

    return await present_plan(hosted.live, plan, decide)


async def ask_mode_switch(hosted: "HostedSession", error: ModelError) -> bool:
    """Offer to continue with model `auto` after a rate limit; return True if a client accepts."""
    if not hosted.supports("request_auto_mode_switch"):
        return False
    live = hosted.live
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
    retry_after = int(error.retry_after) if error.retry_after else None
    request = AutoModeSwitchRequested(
        request_id=new_id(), error_code=error.code, retry_after_seconds=retry_after
    )
    live.emit(request)
    params: JsonObject = {"errorCode": error.code, "retryAfterSeconds": retry_after}
    reply: Any = None
    try:
        reply = await live.questions.first_answer(
            request,
            lambda: hosted.ask_any_client(
                "request_auto_mode_switch",
                "autoModeSwitch.request",
                {name: value for name, value in params.items() if value is not None},
            ),
        )
    except ClientError:
        reply = None
    response = reply.get("response") if isinstance(reply, dict) else reply
    response = response if response in ("yes", "yes_always") else "no"
    live.emit(AutoModeSwitchCompleted(request_id=request.request_id, response=response))
    if response == "no":
        return False
    live.controls.set_model("auto", cause="rate_limit_auto_switch")
    return True


class LimitAnswer(msgspec.Struct, rename="camel"):
    """A person's decision about a limit in AI credits that is used up."""

    action: Literal["add", "set", "unset", "cancel"] = "cancel"
    additional_ai_credits: float | None = None
    max_ai_credits: float | None = None

    def find_limit(self, limit: float) -> float | None:
        """Return the new limit in AI credits; None for no limit, the old one if unchanged."""
        match self.action:
            case "add":
                return limit + max(0.0, self.additional_ai_credits or 0.0)
            case "set" if self.max_ai_credits is not None:
                return max(0.0, self.max_ai_credits)
            case "unset":
                return None
            case _:
                return limit


async def ask_limit(hosted: "HostedSession", spent: float, limit: float) -> bool | None:
    """Ask clients for a higher limit. Return True if they changed it, None if none wants to know.

    `spent` and `limit` are in USD.
    """
    wire_name = SessionLimitsExhaustedRequested.wire_name
    if wire_name not in hosted.interests.values() or not hosted.participants:
        return None
    live, allowed = hosted.live, limit / CREDIT_USD
    request = SessionLimitsExhaustedRequested(
        request_id=new_id(), used_ai_credits=spent / CREDIT_USD, max_ai_credits=allowed
    )
    answer = LimitAnswer()
    try:
        answer = await hosted.ask_by_event(request)
    finally:
        response = {name: value for name, value in msgspec.to_builtins(answer).items() if value}
        live.emit(SessionLimitsExhaustedCompleted(request_id=request.request_id, response=response))
    changed = answer.find_limit(allowed)
    if changed == allowed:
        return False
    limits = live.controls.options.limits
    max_usd = None if changed is None else changed * CREDIT_USD
    live.controls.set_limits(msgspec.structs.replace(limits, max_usd=max_usd, in_credits=True))
    return True


async def ask_sampling(hosted: "HostedSession", question: SamplingQuestion) -> JsonObject | None:
    """Let a client that registered interest answer an MCP server; None if there is none."""
    wire_name = SamplingRequested.wire_name
    if wire_name not in hosted.interests.values() or not hosted.participants:
        return None
    request = SamplingRequested(
        request_id=new_id(),
        server_name=question.server,
        mcp_request_id=question.number,
        request=question.request,
    )
    try:
        response = await hosted.ask_by_event(request)
    finally:
        hosted.live.emit(SamplingCompleted(request_id=request.request_id))
    return {"response": response} if isinstance(response, dict) else {}
