"""Questions to a person, and the answers of clients."""

import msgspec

from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.question import ElicitationRequested
from trimtab.contracts.ids import new_id
from trimtab.host.client_questions import LimitAnswer, show_form
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Elicit(msgspec.Struct, rename="camel"):
    message: str
    requested_schema: JsonObject | None = None


class ElicitationAnswer(msgspec.Struct, rename="camel"):
    request_id: str
    result: JsonObject


class Response(msgspec.Struct, rename="camel"):
    request_id: str
    response: JsonObject


@methods.on("session.ui.elicitation", Elicit)
async def elicit(call: Call, params: Elicit) -> JsonObject:
    """Show a form in every client that can; the first answer wins."""
    hosted = call.session
    if not hosted.supports("request_elicitation"):
        raise UsageError("No client of this session can show a form; register a handler for it.")
    request = ElicitationRequested(
        request_id=new_id(),
        message=params.message,
        requested_schema=params.requested_schema,
        mode="form",
    )
    result = await show_form(hosted, request)
    return {name: value for name, value in result.items() if value is not None}


@methods.on("session.ui.handlePendingElicitation", ElicitationAnswer)
async def handle_elicitation(call: Call, params: ElicitationAnswer) -> JsonObject:
    return {"success": call.session.questions.answer(params.request_id, params.result)}


@methods.on("session.ui.handlePendingUserInput", Response)
async def handle_user_input(call: Call, params: Response) -> JsonObject:
    return {"success": call.session.questions.answer(params.request_id, params.response)}


@methods.on("session.ui.handlePendingExitPlanMode", Response)
async def handle_exit_plan_mode(call: Call, params: Response) -> JsonObject:
    return {"success": call.session.questions.answer(params.request_id, params.response)}


class ModeSwitchAnswer(msgspec.Struct, rename="camel"):
    request_id: str
    response: str


@methods.on("session.ui.handlePendingAutoModeSwitch", ModeSwitchAnswer)
async def handle_mode_switch(call: Call, params: ModeSwitchAnswer) -> JsonObject:
    return {"success": call.session.questions.answer(params.request_id, params.response)}


class LimitResponse(msgspec.Struct, rename="camel"):
    request_id: str
    response: LimitAnswer


@methods.on("session.ui.handlePendingSessionLimitsExhausted", LimitResponse)
async def handle_limits(call: Call, params: LimitResponse) -> JsonObject:
    return {"success": call.session.questions.answer(params.request_id, params.response)}


class SamplingResponse(msgspec.Struct, rename="camel"):
    request_id: str
    response: JsonObject | None = None


@methods.on("session.ui.handlePendingSampling", SamplingResponse)
async def answer_sampling(call: Call, params: SamplingResponse) -> JsonObject:
    """Give an MCP server a message; without one its request is rejected."""
    return {"success": call.session.questions.answer(params.request_id, params.response)}


class Question(msgspec.Struct):
    question: str


@methods.on("session.ui.ephemeralQuery", Question)
async def ask_aside(call: Call, params: Question) -> JsonObject:
    """Ask the model about the conversation, without adding to it."""
    return {"answer": await call.session.live.ask_aside(params.question)}


class Handle(msgspec.Struct):
    handle: str


@methods.on("session.ui.registerDirectAutoModeSwitchHandler")
async def register_handler(call: Call, params: Nothing) -> JsonObject:
    """Register a client that answers questions about another model itself."""
    handle = new_id()
    call.session.mode_switch_handlers.add(handle)
    return {"handle": handle}


@methods.on("session.ui.unregisterDirectAutoModeSwitchHandler", Handle)
async def unregister_handler(call: Call, params: Handle) -> JsonObject:
    known = params.handle in call.session.mode_switch_handlers
    call.session.mode_switch_handlers.discard(params.handle)
    return {"unregistered": known}
