"""Model calls beside the conversation, for summaries and titles: budgeted and recorded too."""

from contextlib import aclosing
from time import perf_counter

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.provider import Price, Provider, Reply, Request
from trimtab.contracts.run import Run
from trimtab.loop.sample import guess_cost, spent_on


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers."""

    provider: Provider
    model: str
    price: Price | None = None

    @classmethod
    def of(cls, run: Run) -> "Writer":
        """The model of the run itself."""
        return cls(
            provider=run.agent.model.provider,
            model=run.agent.model.name,
            price=run.agent.model.price,
        )


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is for, and how large it may get, in tokens."""

    purpose: str
    prompt: int
    answer: int
    attempt: int = 0


async def ask_beside(run: Run, writer: Writer, errand: Errand, request: Request) -> Reply:
    """One call. Raises `ModelError`, of the category `budget` if nothing is left to pay for it."""
    purse = run.agent.budget
    if purse is not None and not purse.reserve_call(
        errand.purpose, errand.prompt, errand.answer, writer.price
    ):
        raise ModelError(
            f"The budget leaves no room for a call for {errand.purpose}; raise it.",
            category="budget",
        )
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
            "The model service ended its answer without finishing it; try again.",
            category="transport",
        )
    except ModelError:
        status = "error"
        raise
    finally:
        record_call(run, writer, errand, status, reply, int((perf_counter() - started) * 1000))


def record_call(
    run: Run, writer: Writer, errand: Errand, status: str, reply: Reply | None, duration_ms: int
) -> None:
    """The durable record that settles what was reserved."""
    run.session.emit(
        ModelCall(
            purpose=errand.purpose,
            model=(reply and reply.model) or writer.model,
            requested_model=writer.model,
            status=status,
            attempt=errand.attempt,
            duration_ms=duration_ms,
            **spent_on(reply.usage if reply else None, writer.price),
            **(guess_cost(errand.prompt, 0, writer.price) if status == "aborted" else {}),
        )
    )
