"""Puts a question of the model to a person, and records that it was asked and answered."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from trimtab.contracts.events.question import UserInputCompleted, UserInputRequested
from trimtab.contracts.ids import new_id
from trimtab.contracts.questions import Question, Response

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession


async def present_question(
    live: "LiveSession", question: Question, ask: Callable[[], Awaitable[Any]]
) -> Response | None:
    """Return the answer of `ask`, or one that a client gave by the request's id before.

    Returns None if there is no answer.
    """
    request = UserInputRequested(
        request_id=new_id(),
        question=question.text,
        choices=list(question.choices) or None,
        allow_freeform=question.allow_freeform,
        tool_call_id=question.call_id or None,
    )
    live.emit(request)
    response: Response | None = None
    try:
        answer = await live.questions.first_answer(request, ask)
        response = read_response(answer, question)
        return response
    finally:
        live.emit(
            UserInputCompleted(
                request_id=request.request_id,
                answer=response.text if response else None,
                was_freeform=response.freeform if response else True,
            )
        )


def read_response(answer: Any, question: Question) -> Response | None:
    """Return the response in an answer; None if it cannot be read."""
    if isinstance(answer, Response):
        return answer
    text = answer.get("answer") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return None
    return Response(
        text=text, freeform=bool(answer.get("wasFreeform", text not in question.choices))
    )
