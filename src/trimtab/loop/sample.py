"""Makes a model call: streams the reply, publishes the deltas, records the result."""

from contextlib import aclosing
from time import perf_counter

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.assistant import (
    AssistantMessage,
    AssistantMessageDelta,
    AssistantMessageStart,
    AssistantReasoning,
    AssistantReasoningDelta,
    AssistantTurnRetry,
    AssistantUsage,
)
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.model import ModelCallFailure, ModelCallStart
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import AssistantMessage as ReplyMessage
from trimtab.contracts.messages import (
    Message,
    Reasoning,
    ToolCall,
    UserMessage,
    replace_images,
)
from trimtab.contracts.processor import CallSkipped, Stop
from trimtab.contracts.provider import (
    Price,
    ReasoningDelta,
    Reply,
    Request,
    TextDelta,
    Usage,
    Waiting,
)
from trimtab.contracts.run import Run

FILTERED = frozenset(("content_filter", "refusal", "safety"))
"""Reasons by which a service ends an answer that it does not let through."""


async def sample(run: Run) -> Reply:
    """Call the model until it replies or no processor asks for a retry."""
    attempt = 0
    while True:
        try:
            return await Sampling(run, attempt).finish()
        except ModelError as error:
            try:
                if not await may_retry(run, error, attempt):
                    raise
            except CallSkipped:
                return Reply(message=ReplyMessage(text=""))
            attempt += 1


async def may_retry(run: Run, error: ModelError, attempt: int) -> bool:
    """Report a failure to every processor; return True if any of them asks for a retry."""
    verdicts = [
        await processor.on_request_error(run, error, attempt)
        for processor in run.agent.acting["on_request_error"]
    ]
    return any(verdicts)


class Sampling:
    """One attempt at a model call, and the events it emits."""

    def __init__(self, run: Run, attempt: int) -> None:
        self._run = run
        self._attempt = attempt
        self._message_id = new_id()
        self._reasoning_id = new_id()
        self._started = perf_counter()
        self._first_token: float | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_began: float | None = None
        self._reasoning_ended: float | None = None
        self._request: Request | None = None

    async def finish(self) -> Reply:
        run = self._run
        run.session.emit(ModelCallStart(turn_id=str(run.turn), model=run.agent.model.name))
        status = "aborted"
        try:
            reply = make_ids_unique(await self._receive())
            status = "success"
        except ModelError as error:
            status = "error"
            self._record_failure(error)
            raise
        finally:
            if status == "aborted":
                self._record_call(status)
        if reply.substituted:
            self._warn_of_substitution(str(reply.model))
        self._record(reply)
        self._adopt_limit(reply.prompt_limit)
        if not reply.message.tool_calls:
            self._check_finish(reply)
        return reply

    def _adopt_limit(self, limit: int | None) -> None:
        """Use the service's own limit of prompts from now on: ours was a guess by the name."""
        model = self._run.agent.model
        if limit is not None and limit != model.prompt_limit:
            model = msgspec.structs.replace(model, prompt_limit=limit)
            self._run.agent = msgspec.structs.replace(self._run.agent, model=model)

    def _check_finish(self, reply: Reply) -> None:
        """Treat a filtered answer as an error, a cut or missing one as incomplete.

        After tool calls a model may end without a word: its work is the answer.
        """
        if reply.finish_reason in FILTERED:
            raise ModelError(
                "The model service filtered the answer; reword the request.", category="refused"
            )
        if reply.finish_reason == "length":
            self._leave_unfinished(
                "output_limit",
                "The reply was cut at the output limit of the model; ask it to go on, or raise it.",
            )
        elif not reply.message.text.strip() and self._run.turn == 0:
            self._leave_unfinished(
                "empty_answer", "The model answered nothing; ask again, or choose another model."
            )

    def _leave_unfinished(self, reason: str, message: str) -> None:
        run = self._run
        run.session.emit(SessionWarning(warning_type=reason, message=message))
        run.stop = run.stop or Stop(reason=reason, exit_code=3, message=message)

    def _warn_of_substitution(self, answered: str) -> None:
        """Warn, once for each pair, that the service used another model than the person chose."""
        run = self._run
        requested = run.agent.model.name
        if (key := f"substituted {requested} {answered}") in run.warned:
            return
        run.warned.add(key)
        run.session.emit(
            SessionWarning(
                warning_type="model_substituted",
                message=f"{requested} was requested, but the service answered with {answered}; "
                "choose another model or service if that matters.",
            )
        )

    async def _receive(self) -> Reply:
        run = self._run
        session = run.session
        self._request = request = Request(
            model=run.agent.model.name,
            system=session.conversation.system,
            messages=visible_messages(run),
            tools=() if run.closing else run.agent.specs,
            stream=run.agent.model.stream,
            effort=run.agent.model.effort,
            reasoning_summary=run.agent.model.reasoning_summary,
            max_output_tokens=run.agent.model.max_output_tokens,
            headers={
                "x-initiator": self._initiator(),
                "x-interaction-id": run.interaction_id,
                **identify(run),
                **run.prompt.headers,
            },
            cache_key=session.id,
            answer_schema=run.origin.answer_schema,
        )
        async with aclosing(run.agent.model.provider.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    return item
                if isinstance(item, Waiting):
                    self._publish_wait(item)
                    continue
                if self._first_token is None:
                    self._first_token = perf_counter()
                if isinstance(item, TextDelta):
                    self._publish_text(item.text)
                elif isinstance(item, ReasoningDelta):
                    self._publish_reasoning(item.text)
        raise ModelError(
            "The model service closed the stream before the reply was complete; try again.",
            category="transport",
        )

    def _publish_wait(self, waiting: Waiting) -> None:
        run = self._run
        run.session.emit(
            AssistantTurnRetry(
                turn_id=str(run.turn),
                model=run.agent.model.name,
                reason=waiting.reason,
                retry_in_seconds=round(waiting.seconds, 3),
            )
        )

    def _publish_reasoning(self, text: str) -> None:
        if self._reasoning_began is None:
            self._reasoning_began = perf_counter()
        self._reasoning.append(text)
        self._run.session.emit(
            AssistantReasoningDelta(reasoning_id=self._reasoning_id, delta_content=text)
        )

    def _publish_text(self, text: str) -> None:
        session = self._run.session
        if not self._text:
            self._reasoning_ended = perf_counter()
            session.emit(AssistantMessageStart(message_id=self._message_id))
        self._text.append(text)
        session.emit(AssistantMessageDelta(message_id=self._message_id, delta_content=text))

    def _record(self, reply: Reply) -> None:
        run = self._run
        message, usage = reply.message, reply.usage
        model = reply.model or run.agent.model.name
        duration = int((perf_counter() - self._started) * 1000)
        run.session.emit(
            AssistantUsage(
                model=model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                cost=reply.billing_multiplier,
                duration=duration,
                time_to_first_token_ms=self._time_to_first_token(),
                initiator=self._initiator(),
                provider_call_id=reply.request_id,
                reasoning_effort=run.agent.model.effort,
                finish_reason=reply.finish_reason,
            )
        )
        if usage.cache_read_tokens is not None and self._request is not None:
            from trimtab.loop.cache import watch_cache

            run.last_request = watch_cache(run.session, run.last_request, self._request, usage)
        reasoning = message.reasoning or Reasoning()
        self._record_reasoning(reasoning.text or "", reasoning.opaque or reasoning.encrypted)
        self._record_call("success", reply)
        run.session.emit(
            AssistantMessage(
                message_id=self._message_id,
                content=message.text,
                tool_requests=[_request(call) for call in message.tool_calls],
                reasoning_opaque=reasoning.opaque,
                reasoning_text=reasoning.text,
                reasoning_wire_field=reasoning.field,
                reasoning_blocks=self._blocks(reasoning),
                encrypted_content=reasoning.encrypted,
                phase=message.phase,
                output_tokens=usage.output_tokens,
                interaction_id=run.interaction_id,
                request_id=reply.request_id,
                model=model,
                turn_id=str(run.turn),
                originating_message_id=run.origin.id or None,
                citations=reply.citations if run.agent.model.citations else None,
            )
        )

    def _record_reasoning(self, text: str, opaque: str | None = None) -> None:
        if not text and not opaque:
            return
        began, ended = self._reasoning_began, self._reasoning_ended or perf_counter()
        self._run.session.emit(
            AssistantReasoning(
                reasoning_id=self._reasoning_id,
                content=text,
                reasoning_opaque=opaque,
                duration_ms=None if began is None else max(0, int((ended - began) * 1000)),
            )
        )

    def _record_call(self, status: str, reply: Reply | None = None) -> None:
        run = self._run
        usage = reply.usage if reply else None
        if reply is None:
            self._record_reasoning("".join(self._reasoning))
        run.session.emit(
            ModelCall(
                purpose="subagent" if run.agent.depth else "main",
                model=(reply and reply.model) or run.agent.model.name,
                requested_model=run.agent.model.name,
                status=status,
                turn_id=str(run.turn),
                attempt=self._attempt,
                duration_ms=int((perf_counter() - self._started) * 1000),
                partial_content=None if reply else "".join(self._text) or None,
                premium_requests=self._premium_requests(reply),
                **usage_fields(usage, run.agent.model.price),
                **({} if reply else self._estimate_cost(status)),
            )
        )

    def _estimate_cost(self, status: str) -> JsonObject:
        """Return the estimated cost of a call without usage figures; a refused call is free."""
        output = sum(map(len, self._text)) // 4
        if status != "aborted" and not output:
            return {}
        context = self._run.measured
        return estimated_fields(
            context.total if context else 0, output, self._run.agent.model.price
        )

    def _record_failure(self, error: ModelError) -> None:
        run = self._run
        run.session.emit(
            ModelCallFailure(
                source="top_level",
                model=run.agent.model.name,
                status_code=error.status,
                duration_ms=int((perf_counter() - self._started) * 1000),
                error_message=error.message,
                retry_attempt=self._attempt,
                failure_kind="transport" if error.category == "transport" else "api",
            )
        )
        self._record_call("error")

    def _blocks(self, reasoning: Reasoning) -> JsonObject | None:
        if not reasoning.blocks:
            return None
        return {"provider": self._run.agent.model.provider.name, "blocks": reasoning.blocks}

    def _premium_requests(self, reply: Reply | None) -> float | None:
        """Return the premium requests of a call: services bill those that a person initiates."""
        return reply.billing_multiplier if reply and self._initiator() == "user" else None

    def _initiator(self) -> str:
        return "user" if self._run.prompt.billable and not self._run.turn else "agent"

    def _time_to_first_token(self) -> int | None:
        return (
            None if self._first_token is None else int((self._first_token - self._started) * 1000)
        )


def make_ids_unique(reply: Reply) -> Reply:
    """Replace duplicate ids of tool calls, which models choose themselves."""
    message, seen = reply.message, set[str]()
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        calls.append(msgspec.structs.replace(call, id=new_id()) if call.id in seen else call)
        seen.add(call.id)
    if len(seen) == len(calls):
        return reply
    message = msgspec.structs.replace(message, tool_calls=tuple(calls))
    return msgspec.structs.replace(reply, message=message)


def usage_fields(usage: Usage | None, price: Price | None) -> JsonObject:
    """Return the fields of a call's record about tokens and cost."""
    if usage is None:
        return {}
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": price.of(usage) if price else None,
    }


def visible_messages(run: Run) -> tuple[Message, ...]:
    """Return the conversation for the model, without images if it has no vision."""
    messages = tuple(run.session.conversation.messages)
    if run.agent.model.vision:
        return messages
    return tuple(
        replace_images(message, NO_VISION) if isinstance(message, UserMessage) else message
        for message in messages
    )


NO_VISION = "[An image that this model cannot see.]"


def identify(run: Run) -> dict[str, str]:
    """Return the headers that identify the calling agent: the main agent or a sub-agent."""
    if not run.agent.depth:
        return {"x-interaction-type": "conversation-agent", "x-agent-task-id": run.session.id}
    return {
        "x-interaction-type": "conversation-subagent",
        "x-agent-task-id": run.agent.id,
        "x-parent-agent-id": run.agent.caller_id,
    }


def estimated_fields(prompt: int, output: int, price: Price | None) -> JsonObject:
    """Return the fields of an aborted call's record about its estimated cost."""
    usage = Usage(input_tokens=prompt, output_tokens=output)
    return {
        "estimated_tokens": prompt + output,
        "estimated_cost_usd": price.of(usage) if price else None,
    }


def _request(call: ToolCall) -> JsonObject:
    request: JsonObject = {
        "toolCallId": call.id,
        "name": call.name,
        "arguments": call.readable_arguments(),
        "type": call.kind,
    }
    if call.extra:
        request["extra"] = call.extra
    return request
