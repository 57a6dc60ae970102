"""Model calls outside the conversation, for summaries and titles: also budgeted and recorded."""

from contextlib import aclosing
from time import perf_counter

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.ids import new_id
from trimtab.contracts.provider import Price, Provider, Reply, Request
from trimtab.contracts.run import Run
from trimtab.loop.sample import estimated_fields, usage_fields


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """The model and service that answer a side call."""

    provider: Provider
    model: str
    price: Price | None = None

    @classmethod
    def of(cls, run: Run) -> "Writer":
        """Return the model of the run itself."""
        return cls(
            provider=run.agent.model.provider,
            model=run.agent.model.name,
            price=run.agent.model.price,
        )


class SideCall(msgspec.Struct, frozen=True, kw_only=True):
    """The purpose of a side call, and its expected size in tokens."""

    purpose: str
    prompt: int
    answer: int
    attempt: int = 0


async def call_model(run: Run, writer: Writer, call: SideCall, request: Request) -> Reply:
    """Make a side call. Raises `ModelError`, with category `budget` if the budget is too small."""
    budget = run.agent.budget
    if budget is not None and not budget.reserve_call(
        call.purpose, call.prompt, call.answer, writer.price
    ):
        raise ModelError(
            f"The remaining budget is too small for a {call.purpose} call; raise the limit.",
            category="budget",
        )
    headers = {"x-initiator": "agent", "x-interaction-id": run.interaction_id or new_id()}
    request = msgspec.structs.replace(request, headers=headers | request.headers)
    started, status, reply = perf_counter(), "aborted", None
    try:
        async with aclosing(writer.provider.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    reply = item
                    status = "success"
                    return reply
        status = "error"
        raise ModelError(
            "The model service closed the stream before the reply was complete; try again.",
            category="transport",
        )
    except ModelError:
        status = "error"
        raise
    finally:
        record_call(run, writer, call, status, reply, int((perf_counter() - started) * 1000))


def record_call(
    run: Run, writer: Writer, call: SideCall, status: str, reply: Reply | None, duration_ms: int
) -> None:
    """Emit the durable record of a call, which settles its reservation."""
    run.session.emit(
        ModelCall(
            purpose=call.purpose,
            model=(reply and reply.model) or writer.model,
            requested_model=writer.model,
            status=status,
            attempt=call.attempt,
            duration_ms=duration_ms,
            **usage_fields(reply.usage if reply else None, writer.price),
            **(estimated_fields(call.prompt, 0, writer.price) if status == "aborted" else {}),
        )
    )
