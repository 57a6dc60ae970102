"""One model call, and the events that keep what it answered."""

from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any

import msgspec
import pytest

from loopkit import EchoTool, change_agent, drained, make_run
from trimtab.contracts.errors import ModelError
from trimtab.contracts.messages import AssistantMessage, Image, Reasoning, ToolCall, UserMessage
from trimtab.contracts.processor import CallSkipped, Processor, Stop
from trimtab.contracts.provider import (
    AnswerSchema,
    Delta,
    Price,
    ReasoningDelta,
    Reply,
    Request,
    TextDelta,
    Usage,
    Waiting,
)
from trimtab.contracts.run import Measured, Prompt, Run
from trimtab.loop.sample import estimated_fields, make_ids_unique, sample, usage_fields

USAGE = Usage(
    input_tokens=1_000,
    output_tokens=200,
    cache_read_tokens=300,
    cache_write_tokens=50,
    reasoning_tokens=20,
)
PRICE = Price(input=10.0, output=100.0)


class Answers:
    """A service that sends these items, one list for each call."""

    name = "answers"

    def __init__(self, *calls: list[Delta | Reply | ModelError]) -> None:
        self._calls = iter(calls)
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply]:
        self.requests.append(request)
        for item in next(self._calls):
            if isinstance(item, ModelError):
                raise item
            yield item

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


def reply(text: str = "Done.", **fields: Any) -> Reply:
    return Reply(message=AssistantMessage(text=text), **fields)


def answered(
    *calls: list[Any], processors: tuple[Processor, ...] = (), **options: Any
) -> tuple[Run, Answers]:
    """A run whose next model calls get these items."""
    run = make_run([], processors=processors)
    service = Answers(*calls)
    model = msgspec.structs.replace(run.agent.model, provider=service, **options)
    change_agent(run, model=model)
    return run, service


class Retries(Processor):
    """Asks for a number of further attempts."""

    def __init__(self, count: int, *, skip: bool = False) -> None:
        self._left, self._skip = count, skip
        self.seen: list[int] = []

    async def on_request_error(self, run: Run, error: ModelError, attempt: int) -> bool:
        self.seen.append(attempt)
        if self._skip:
            raise CallSkipped
        self._left -= 1
        return self._left >= 0


@pytest.mark.proves("EVT-12")
@pytest.mark.parametrize(
    ("thought", "opaque", "encrypted"),
    [
        ({"text": "First I look."}, None, None),
        ({"opaque": "c2VjcmV0"}, "c2VjcmV0", None),
        ({"encrypted": "gAAA"}, None, "gAAA"),
        ({"text": "So.", "opaque": "c2VjcmV0"}, "c2VjcmV0", None),
    ],
)
async def test_reasoning_of_any_kind_is_kept_with_the_message(
    thought: dict[str, Any], opaque: str | None, encrypted: str | None
) -> None:
    session = await drained(make_run([{"text": "Done.", "reasoning": thought}], "go"))
    (shown,), (message,) = session.of("assistant.reasoning"), session.of("assistant.message")
    assert shown.content == thought.get("text", "")
    assert shown.reasoning_opaque == (opaque or encrypted)
    assert message.reasoning_text == thought.get("text")
    assert (message.reasoning_opaque, message.encrypted_content) == (opaque, encrypted)


async def test_a_reply_without_reasoning_has_no_such_event() -> None:
    session = await drained(make_run([{"text": "Done."}], "go"))
    assert session.of("assistant.reasoning") == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"error": {"status": 500}}, "api"),
        ({"text": "cut " * 20, "break": {"how": "close", "after": 1}}, "transport"),
    ],
)
async def test_a_failed_call_says_whether_the_service_or_the_connection_failed(
    reply: Any, kind: str
) -> None:
    run = make_run([reply], "go")
    with pytest.raises(ModelError):
        await drained(run)
    (failure,) = run.session.of("model.call_failure")  # type: ignore[attr-defined]
    assert failure.failure_kind == kind


async def test_the_cost_of_a_broken_answer_is_estimated_from_its_length() -> None:
    run = make_run([{"text": "x" * 400, "break": {"how": "close", "after": 10}}], "go")
    with pytest.raises(ModelError):
        await drained(run)
    (recorded,) = run.session.of("trimtab.model_call")  # type: ignore[attr-defined]
    assert len(recorded.partial_content) <= 400
    assert recorded.estimated_tokens == len(recorded.partial_content) // 4


@pytest.mark.parametrize(("depth", "purpose"), [(0, "main"), (1, "subagent"), (2, "subagent")])
async def test_a_recorded_call_says_whether_a_sub_agent_made_it(depth: int, purpose: str) -> None:
    run = make_run(["Done."], "go")
    change_agent(run, depth=depth)
    (recorded,) = (await drained(run)).of("trimtab.model_call")
    assert recorded.purpose == purpose


def of(run: Run, kind: str) -> list[Any]:
    return run.session.of(kind)  # type: ignore[attr-defined, no-any-return]


async def test_the_record_of_a_reply_has_every_figure_of_the_service() -> None:
    run, _ = answered(
        [
            TextDelta("Do"),
            reply(
                usage=USAGE,
                model="scripted-2026",
                request_id="req-1",
                finish_reason="stop",
                billing_multiplier=0.33,
            ),
        ],
        price=PRICE,
        effort="high",
    )
    run.turn, began = 3, perf_counter()
    await sample(run)
    (usage,), (recorded,) = of(run, "assistant.usage"), of(run, "trimtab.model_call")
    for event in (usage, recorded):
        assert event.model == "scripted-2026"
        assert event.input_tokens == 1_000
        assert event.output_tokens == 200
        assert event.cache_read_tokens == 300
        assert event.cache_write_tokens == 50
        assert event.reasoning_tokens == 20
    assert (usage.provider_call_id, usage.finish_reason) == ("req-1", "stop")
    assert (usage.cost, usage.reasoning_effort) == (0.33, "high")
    assert 0 <= usage.time_to_first_token_ms <= usage.duration <= (perf_counter() - began) * 1000
    assert recorded.cost_usd == pytest.approx(0.03)
    assert (recorded.requested_model, recorded.turn_id) == ("scripted", "3")
    assert (recorded.status, recorded.attempt, recorded.partial_content) == ("success", 0, None)
    assert (recorded.estimated_tokens, recorded.estimated_cost_usd) == (None, None)


async def test_a_reply_in_one_piece_has_no_time_to_its_first_token() -> None:
    run, _ = answered([reply()])
    await sample(run)
    (usage,) = of(run, "assistant.usage")
    assert usage.time_to_first_token_ms is None
    assert usage.model == "scripted", "the requested model, if the service names none"


@pytest.mark.parametrize(
    ("turn", "billable", "initiator", "premium"),
    [(0, True, "user", 2.0), (1, True, "agent", None), (0, False, "agent", None)],
)
async def test_only_the_first_call_for_a_prompt_of_a_person_is_theirs(
    turn: int, billable: bool, initiator: str, premium: float | None
) -> None:
    run, service = answered([reply(billing_multiplier=2.0)])
    run.turn, run.prompt = turn, Prompt(text="go", billable=billable)
    await sample(run)
    assert service.requests[0].headers["x-initiator"] == initiator
    assert of(run, "assistant.usage")[0].initiator == initiator
    assert of(run, "trimtab.model_call")[0].premium_requests == premium


async def test_a_request_carries_the_settings_of_the_model_and_the_headers_of_the_prompt() -> None:
    run, service = answered(
        [reply()], stream=False, effort="low", reasoning_summary=True, max_output_tokens=77
    )
    schema = AnswerSchema(schema={"type": "object"})
    run.prompt = Prompt(text="go", headers={"x-trace": "t1"})
    run.origin = Prompt(text="go", answer_schema=schema)
    run.interaction_id = "i1"
    await sample(run)
    (request,) = service.requests
    assert (request.stream, request.effort, request.reasoning_summary) == (False, "low", True)
    assert (request.max_output_tokens, request.answer_schema) == (77, schema)
    assert (request.model, request.cache_key) == ("scripted", run.session.id)
    assert request.headers == {
        "x-initiator": "user",
        "x-interaction-id": "i1",
        "x-interaction-type": "conversation-agent",
        "x-agent-task-id": run.session.id,
        "x-trace": "t1",
    }


async def test_a_sub_agent_names_itself_and_its_caller_in_the_headers() -> None:
    run, service = answered([reply()])
    change_agent(run, depth=1, id="agent-7", caller_id="agent-1")
    await sample(run)
    headers = service.requests[0].headers
    assert headers["x-interaction-type"] == "conversation-subagent"
    assert headers["x-agent-task-id"] == "agent-7"
    assert headers["x-parent-agent-id"] == "agent-1"


@pytest.mark.parametrize(("closing", "offered"), [(False, ["echo"]), (True, [])])
async def test_the_last_call_of_a_run_offers_no_tools(closing: bool, offered: list[str]) -> None:
    run, service = answered([reply()])
    change_agent(run, specs=(EchoTool().spec,))
    run.closing = closing
    await sample(run)
    assert [tool.name for tool in service.requests[0].tools] == offered


async def test_deltas_belong_to_the_message_that_starts_once() -> None:
    run, _ = answered(
        [
            ReasoningDelta("Hm, "),
            ReasoningDelta("so."),
            *map(TextDelta, ("He", "ll", "o")),
            reply(),
        ]
    )
    await sample(run)
    types = [kind for kind in run.session.types() if "message" in kind]  # type: ignore[attr-defined]
    assert types[:2] == ["assistant.message_start", "assistant.message_delta"]
    (start,), (message,) = of(run, "assistant.message_start"), of(run, "assistant.message")
    assert start.message_id == message.message_id
    deltas = of(run, "assistant.message_delta")
    assert [(delta.message_id, delta.delta_content) for delta in deltas] == [
        (start.message_id, "He"),
        (start.message_id, "ll"),
        (start.message_id, "o"),
    ]
    thoughts = of(run, "assistant.reasoning_delta")
    assert [thought.delta_content for thought in thoughts] == ["Hm, ", "so."]
    assert len({thought.reasoning_id for thought in thoughts}) == 1


async def test_reasoning_says_how_long_the_model_thought() -> None:
    thought = AssistantMessage(text="Done.", reasoning=Reasoning(text="Hm."))
    run, _ = answered(
        [ReasoningDelta("Hm."), TextDelta("Done."), Reply(message=thought)],
        [Reply(message=thought)],
    )
    began = perf_counter()
    await sample(run)
    await sample(run)
    streamed, whole = of(run, "assistant.reasoning")
    assert 0 <= streamed.duration_ms <= (perf_counter() - began) * 1000
    assert whole.duration_ms is None, "nobody saw it begin"


async def test_a_service_that_makes_us_wait_is_reported() -> None:
    run, _ = answered([Waiting(1.23456, "rate_limit"), reply()])
    run.turn = 2
    await sample(run)
    (wait,) = of(run, "assistant.turn_retry")
    assert (wait.turn_id, wait.model, wait.reason) == ("2", "scripted", "rate_limit")
    assert wait.retry_in_seconds == 1.235


async def test_a_stream_without_a_reply_is_a_failure_of_the_connection() -> None:
    run, _ = answered([TextDelta("Half an ans")], price=PRICE)
    run.measured = Measured(system=100, tools=0, conversation=20, size=0)
    began = perf_counter()
    with pytest.raises(ModelError, match="closed the stream") as failed:
        await sample(run)
    assert failed.value.category == "transport"
    (recorded,), (failure,) = of(run, "trimtab.model_call"), of(run, "model.call_failure")
    assert (recorded.status, recorded.partial_content) == ("error", "Half an ans")
    assert recorded.estimated_tokens == 120 + len("Half an ans") // 4
    assert recorded.estimated_cost_usd == pytest.approx((120 * 10 + 2 * 100) / 1e6)
    assert (failure.failure_kind, failure.source) == ("transport", "top_level")
    assert 0 <= failure.duration_ms <= (perf_counter() - began) * 1000


async def test_a_call_that_was_refused_before_it_answered_costs_nothing() -> None:
    run, _ = answered([ModelError("Forbidden.", category="auth", status=401)], price=PRICE)
    run.measured = Measured(system=100, tools=0, conversation=20, size=0)
    with pytest.raises(ModelError):
        await sample(run)
    (recorded,), (failure,) = of(run, "trimtab.model_call"), of(run, "model.call_failure")
    assert (recorded.estimated_tokens, recorded.estimated_cost_usd) == (None, None)
    assert (failure.status_code, failure.error_message) == (401, "Forbidden.")
    assert failure.failure_kind == "api"


async def test_every_attempt_is_numbered_and_told_to_all_processors() -> None:
    first, second = Retries(2), Retries(0)
    errors = [[ModelError("Busy.", category="overloaded", status=529)] for _ in range(2)]
    run, service = answered(*errors, [reply()], processors=(first, second))
    assert (await sample(run)).message.text == "Done."
    assert first.seen == second.seen == [0, 1]
    assert len(service.requests) == 3
    assert [each.retry_attempt for each in of(run, "model.call_failure")] == [0, 1]
    assert [each.attempt for each in of(run, "trimtab.model_call")] == [0, 1, 2]


async def test_a_call_that_a_person_skips_gives_an_empty_reply() -> None:
    run, _ = answered(
        [ModelError("Busy.", category="overloaded")], processors=(Retries(0, skip=True),)
    )
    skipped = await sample(run)
    assert (skipped.message.text, skipped.message.tool_calls) == ("", ())


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "safety"])
async def test_a_filtered_answer_is_an_error(reason: str) -> None:
    run, _ = answered([reply(finish_reason=reason)])
    with pytest.raises(ModelError, match="filtered") as failed:
        await sample(run)
    assert failed.value.category == "refused"


@pytest.mark.parametrize("reason", ["content_filter", "length"])
async def test_the_reason_for_which_a_reply_with_calls_ended_does_not_matter(reason: str) -> None:
    message = AssistantMessage(text="", tool_calls=(ToolCall(id="c", name="echo", arguments="{}"),))
    run, _ = answered([Reply(message=message, finish_reason=reason)])
    await sample(run)
    assert run.stop is None
    assert of(run, "session.warning") == []


@pytest.mark.parametrize("earlier", [None, Stop(reason="budget", exit_code=3, message="No money.")])
async def test_a_cut_answer_ends_the_run_unless_something_else_does(earlier: Stop | None) -> None:
    run, _ = answered([reply(finish_reason="length")])
    run.stop = earlier
    await sample(run)
    (warning,) = of(run, "session.warning")
    assert warning.warning_type == "output_limit"
    assert run.stop is not None
    assert run.stop.exit_code == 3
    assert run.stop.reason == ("budget" if earlier else "output_limit")


async def test_another_model_than_the_requested_one_is_told_once() -> None:
    run, _ = answered(
        *(
            [reply(model=name, substituted=name != "scripted")]
            for name in ("b", "b", "c", "scripted")
        )
    )
    for _ in range(4):
        await sample(run)
    warnings = [each.message for each in of(run, "session.warning")]
    assert len(warnings) == 2
    assert "scripted was requested" in warnings[0]
    assert "answered with b;" in warnings[0]
    assert "answered with c;" in warnings[1]


@pytest.mark.parametrize(
    ("before", "said", "after"), [(100, 50, 50), (100, None, 100), (None, 9, 9)]
)
async def test_the_limit_that_a_service_names_replaces_ours(
    before: int | None, said: int | None, after: int
) -> None:
    run, _ = answered([reply(prompt_limit=said)], prompt_limit=before)
    await sample(run)
    assert run.agent.model.prompt_limit == after


@pytest.mark.parametrize(("wanted", "kept"), [(True, {"url": "u"}), (False, None)])
async def test_sources_are_kept_if_they_are_wanted(wanted: bool, kept: Any) -> None:
    run, _ = answered([reply(citations={"url": "u"})], citations=wanted)
    await sample(run)
    assert of(run, "assistant.message")[0].citations == kept


async def test_the_message_names_the_prompt_it_answers() -> None:
    run, _ = answered([reply(request_id="r1", usage=USAGE)], [reply()])
    run.origin, run.interaction_id, run.turn = Prompt(text="go", id="p1"), "i1", 4
    await sample(run)
    run.origin = Prompt(text="go")
    await sample(run)
    message, nameless = of(run, "assistant.message")
    assert (message.originating_message_id, message.interaction_id) == ("p1", "i1")
    assert (message.request_id, message.turn_id, message.output_tokens) == ("r1", "4", 200)
    assert nameless.originating_message_id is None


async def test_blocks_of_reasoning_are_kept_with_the_service_that_wrote_them() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm."}]
    thought = Reasoning(text="Hm.", blocks=blocks, field="reasoning_content")
    run, _ = answered([Reply(message=AssistantMessage(text="x", reasoning=thought))], [reply()])
    await sample(run)
    await sample(run)
    message, plain = of(run, "assistant.message")
    assert message.reasoning_blocks == {"provider": "answers", "blocks": blocks}
    assert message.reasoning_wire_field == "reasoning_content"
    assert plain.reasoning_blocks is None


def call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="echo", arguments="{}")


def test_calls_with_the_same_id_get_new_ones_except_the_first() -> None:
    calls = (call("a"), call("b"), call("a"), call("a"))
    unique = make_ids_unique(Reply(message=AssistantMessage(text="t", tool_calls=calls)))
    ids = [each.id for each in unique.message.tool_calls]
    assert ids[:2] == ["a", "b"]
    assert len(set(ids)) == 4
    assert unique.message.text == "t"


def test_a_reply_with_different_ids_stays_the_same_object() -> None:
    kept = Reply(message=AssistantMessage(text="t", tool_calls=(call("a"), call("b"))))
    assert make_ids_unique(kept) is kept


def test_figures_of_a_call_have_a_cost_only_if_the_price_is_known() -> None:
    assert usage_fields(None, PRICE) == {}
    assert usage_fields(USAGE, None)["cost_usd"] is None
    assert usage_fields(USAGE, PRICE)["cost_usd"] == pytest.approx(0.03)
    assert estimated_fields(1_000, 200, None) == {
        "estimated_tokens": 1_200,
        "estimated_cost_usd": None,
    }
    assert estimated_fields(1_000, 200, PRICE)["estimated_cost_usd"] == pytest.approx(0.03)


@pytest.mark.parametrize(("vision", "images"), [(True, 1), (False, 0)])
async def test_a_model_without_vision_is_told_of_images_in_words(vision: bool, images: int) -> None:
    run, service = answered([reply()], vision=vision)
    picture = Image(data="aGk=", mime_type="image/png", name="a.png")
    conversation = run.session.conversation
    conversation.messages.append(UserMessage(parts=(picture,)))  # type: ignore[attr-defined]
    await sample(run)
    (message,) = service.requests[0].messages
    assert isinstance(message, UserMessage)
    assert sum(isinstance(part, Image) for part in message.parts) == images
    assert ("cannot see" in str(message)) == (not vision)


async def test_extra_fields_of_a_call_are_kept_for_the_service() -> None:
    signed = msgspec.structs.replace(call("a"), extra={"signature": "s"})
    message = AssistantMessage(text="", tool_calls=(signed, call("b")))
    run, _ = answered([Reply(message=message)])
    await sample(run)
    first, second = of(run, "assistant.message")[0].tool_requests
    assert first == {
        "toolCallId": "a",
        "name": "echo",
        "arguments": {},
        "type": "function",
        "extra": {"signature": "s"},
    }
    assert "extra" not in second
