"""A compaction: replaces the conversation by a model's summary and a carryover of facts."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from trimtab.contracts.errors import ModelError
from trimtab.contracts.events.context import (
    MECHANICAL,
    SessionCompactionComplete,
    SessionCompactionStart,
)
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.ids import new_id
from trimtab.contracts.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    role_of,
)
from trimtab.contracts.provider import Reply, Request, Usage
from trimtab.contracts.run import Measured, Run
from trimtab.contracts.text import count
from trimtab.loop.side_calls import SideCall, Writer, call_model

EMPTY = "The model returned an empty summary."
INSTEAD = "The conversation was shortened without a summary; the carryover was kept."
CANCELLED = "It was cancelled before the summary was written."
NOT_ASKED = "The model that writes summaries failed before and was not asked again."
MAX_ATTEMPTS = 2
SUMMARY_TOKENS = 2048
"""The expected output tokens of a summary."""
CLIPPED_MESSAGE = 600
"""The length in characters of a recent message that is kept without a summary."""
RECENT_MESSAGES = 12
"""The number of last messages that are kept without a summary."""
MAX_FULLNESS = 0.9
"""The share of the window to stay under if the system prompt and the tools fill most of it."""
CARRYOVER_SHARE = 0.6
"""The share of the space after a compaction that the carryover may use."""
CHARACTERS_PER_TOKEN = 4
CLIP_OVERHEAD = 45
"""The extra characters of a clipped message: its role and the note about what is missing."""
_CARRYOVER_BLOCKS = ("user_messages", "plan", "todos", "changed_files", "task", "recent_messages")
CLIPPED_RESULT = 2000
"""The length in characters of a tool result, if the conversation is too large to be sent."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that was saved to disk."""

    number: int
    path: str
    title: str = ""


class Carryover(Protocol):
    """Supplies the text that must survive a compaction whatever a model writes."""

    instruction: str

    async def carry(self, budget: int) -> str:
        """Return the person's messages, plan, todos and changed files in `budget` characters."""
        ...

    def summarizer(self) -> Awaitable[Writer | None]:
        """Return the model that writes summaries; None means the model of the run."""
        ...

    def file(self, summary: str) -> Checkpoint | None:
        """Save a summary where people and other programs find it."""
        ...


class SummaryWriters:
    """Remembers which models failed to write a summary, so that they are not paid again.

    A temporary failure, such as an overload, is forgotten after ten minutes.
    """

    TEMPORARY = frozenset(("retryable", "overloaded", "rate_limit", "transport"))
    FORGET_AFTER = 600.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[tuple[str, str], float] = {}

    def note_failure(self, writer: Writer, error: ModelError | None) -> None:
        """Record that a model failed with an error, or wrote an empty summary."""
        temporary = error is not None and error.category in self.TEMPORARY
        until = self._clock() + self.FORGET_AFTER if temporary else float("inf")
        self._failed[writer.provider.name, writer.model] = until

    def note_success(self, writer: Writer) -> None:
        self._failed.pop((writer.provider.name, writer.model), None)

    def has_failed(self, writer: Writer) -> bool:
        """Return True if this model failed and would probably fail again."""
        return self._failed.get((writer.provider.name, writer.model), 0.0) > self._clock()


class Window(msgspec.Struct, frozen=True):
    """The token limit of a request, and the share of it that a compaction aims at."""

    limit: int
    target: float


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The number of characters that a conversation may have after a compaction."""

    total: int
    per_token: float
    """The average characters per token in this conversation."""

    @classmethod
    def find(cls, limit: int, target: float, before: Measured, characters: int) -> "Space":
        """Subtract the system prompt and the tools from the target, a share of the window.

        The result is at least a fifth of the window, if that much is left.
        """
        per_token = float(CHARACTERS_PER_TOKEN)
        if before.conversation > 0 and characters > 0:
            per_token = min(8.0, max(1.0, characters / before.conversation))
        fixed = before.system + before.tools
        least = max(0.05 * limit, min(0.2 * limit, MAX_FULLNESS * limit - fixed))
        return cls(total=int(max(target * limit - fixed, least) * per_token), per_token=per_token)

    @property
    def carryover(self) -> int:
        return int(self.total * CARRYOVER_SHARE)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a compaction. It succeeded if the conversation is shorter now."""

    success: bool
    messages_removed: int = 0
    tokens_removed: int = 0
    tokens_before: int = 0
    """The tokens of the conversation before it was shortened, without system prompt and tools."""
    tokens_after: int = 0
    error: str | None = None
    summary: str | None = None


class Job:
    """A compaction in progress, from the start event, which marks the cut, to the complete event.

    Messages that arrive in between are not summarised; they stay as they are.
    """

    def __init__(
        self,
        run: Run,
        carryover: Carryover,
        writers: SummaryWriters,
        *,
        trigger: str,
        window: "Window",
        instructions: str = "",
    ) -> None:
        limit = window.limit
        self._run = run
        self._carryover = carryover
        self._writers = writers
        self._trigger = trigger
        self._limit = limit
        self._instructions = instructions
        self._id = new_id()
        self._messages = tuple(run.session.conversation.messages)
        self._before = measure(run)
        characters = run.session.conversation.characters
        self._space = Space.find(limit, window.target, self._before, characters)
        self._is_second = run.session.conversation.compactions > 0
        self._error: str | None = None
        self._summary = ""
        self._carried = ""
        self._reply: Reply | None = None
        self._outcome: Outcome | None = None
        run.session.emit(
            SessionCompactionStart(
                system_tokens=self._before.system,
                conversation_tokens=self._before.conversation,
                tool_definitions_tokens=self._before.tools,
                current_tokens=self._before.total,
                token_limit=limit,
                trigger=trigger,
                compaction_attempt_id=self._id,
                turn_id=str(run.turn),
                messages_length=len(self._messages),
            )
        )
        self._task = asyncio.get_running_loop().create_task(self._work())
        run.tasks.add(self._task)
        self._task.add_done_callback(run.tasks.discard)

    @property
    def done(self) -> bool:
        return self._task.done()

    def cancel(self) -> None:
        self._task.cancel()

    async def wait(self) -> None:
        await asyncio.wait((self._task,))

    def finish(self, *, must: bool) -> Outcome:
        """Record the outcome, once. With `must`, shorten the conversation without a summary."""
        if self._outcome is None:
            self._outcome = self._finish(must=must)
        return self._outcome

    def _finish(self, *, must: bool) -> Outcome:
        if self._task.cancelled():
            return Outcome(success=False, error=CANCELLED)
        if bug := self._task.exception():
            raise bug
        if self._summary:
            summary = clip(self._summary, self._space.total - len(self._carried))
            return self._record(success=True, summary=f"{summary}\n\n{self._carried}")
        error = self._error or EMPTY
        if not must:
            return self._record(success=False, error=error, summary=None)
        self._run.session.emit(
            SessionWarning(
                warning_type="compaction_without_summary",
                message=f"The conversation was shortened without a summary ({error}) Your "
                "messages, the plan, the todos and the list of changed files were kept; the whole "
                "conversation is still in the session's log.",
            )
        )
        return self._record(success=False, error=error, summary=self._trim())

    def _trim(self) -> str:
        """Return the replacement for the conversation if no model summarises it."""
        messages, left = self._messages, self._space.total - len(self._carried)
        parts = [self._carried]
        if self._is_second and messages:
            earlier = _without_carryover(_text(messages[0]))
            messages = messages[1:]
            if earlier:
                kept = clip(earlier, left // 2)
                left -= len(kept)
                parts.insert(0, f"<earlier_summary>\n{kept}\n</earlier_summary>")
        parts.append(_recent(messages, left))
        return "\n\n".join(filter(None, parts))

    async def _work(self) -> None:
        try:
            await self._summarise()
        except asyncio.CancelledError:
            self._record(success=False, summary=None, error=CANCELLED)
            raise

    async def _summarise(self) -> None:
        carryover = self._carryover
        self._carried = await carryover.carry(min(self._space.carryover, max(2000, self._limit)))
        writer = await find_writer(self._run, carryover)
        # A person who asks for a summary may know that the model works again.
        if self._trigger != "manual" and self._writers.has_failed(writer):
            self._error = NOT_ASKED
            return
        failure: ModelError | None = None
        shorten = self._trigger == "context_limit_retry"
        for attempt in range(MAX_ATTEMPTS):
            try:
                self._summary = await self._ask(writer, attempt, shorten=shorten)
            except ModelError as error:
                failure, self._error = error, error.message
                shorten = shorten or error.category == "too_large"
                if error.category in ("auth", "quota", "budget"):
                    break
            if self._summary:
                self._writers.note_success(writer)
                return
        if failure is None or failure.category != "budget":
            self._writers.note_failure(writer, failure)

    async def _ask(self, writer: Writer, attempt: int, *, shorten: bool) -> str:
        run = self._run
        messages = _shortened(self._messages) if shorten else self._messages
        instruction = self._carryover.instruction
        if self._instructions:
            instruction += f"\n\nThe person adds: {self._instructions}"
        request = Request(
            model=writer.model,
            system=run.session.conversation.system,
            messages=(*messages, UserMessage.of(instruction)),
            tools=run.agent.specs,
            stream=run.agent.model.stream,
            cache_key=run.session.id,
        )
        call = SideCall(
            purpose="compaction", prompt=self._before.total, answer=SUMMARY_TOKENS, attempt=attempt
        )
        self._reply = await call_model(run, writer, call, request)
        return self._reply.message.text.strip()

    def _record(self, *, success: bool, summary: str | None, error: str | None = None) -> Outcome:
        run, before = self._run, self._before
        count = len(run.session.conversation.messages)
        checkpoint = self._carryover.file(summary) if summary else None
        shortened = summary is not None
        removed = len(self._messages) - 1 if shortened else 0
        tail = run.session.conversation.messages[len(self._messages) :]
        characters = len(summary or "") + sum(len(_text(message)) for message in tail)
        after = int(characters / self._space.per_token)
        tokens = max(0, before.conversation - after) if shortened else 0
        usage = self._reply.usage if self._reply else None
        run.session.emit(
            SessionCompactionComplete(
                success=success,
                error=error,
                outcome=_name_outcome(success=success, shortened=shortened, error=error),
                outcome_reason=INSTEAD if shortened and not success else None,
                pre_compaction_tokens=before.total,
                post_compaction_tokens=before.total - tokens,
                pre_compaction_messages_length=count,
                messages_removed=removed,
                tokens_removed=tokens,
                summary_content=summary,
                checkpoint_number=checkpoint.number if checkpoint else None,
                checkpoint_path=checkpoint.path if checkpoint else None,
                checkpoint_title=checkpoint.title or None if checkpoint else None,
                compaction_tokens_used=_tokens_used(usage) if usage else None,
                system_tokens=before.system,
                conversation_tokens=before.conversation - tokens,
                tool_definitions_tokens=before.tools,
                compaction_attempt_id=self._id,
                custom_instructions=self._instructions or None,
                token_limit=self._limit,
                trigger=self._trigger,
            )
        )
        run.measured = Measured(
            system=before.system, tools=before.tools, conversation=before.conversation - tokens
        )
        return Outcome(
            success=shortened,
            messages_removed=removed,
            tokens_removed=tokens,
            tokens_before=before.conversation,
            tokens_after=before.conversation - tokens,
            error=error,
            summary=summary,
        )


def _name_outcome(*, success: bool, shortened: bool, error: str | None) -> str | None:
    if success:
        return None
    if shortened:
        return MECHANICAL
    return "cancelled" if error == CANCELLED else "failed"


def measure(run: Run) -> Measured:
    """Return the current size of the context.

    The size measured for the last call does not include its reply, and a resumed session has no
    last call. The conversation therefore counts at least as much as its texts.
    """
    conversation = run.session.conversation
    texts = sum(_estimate_tokens(_text(message)) for message in conversation.messages)
    if (known := run.measured) is not None:
        return msgspec.structs.replace(known, conversation=max(known.conversation, texts))
    tools = sum(
        _estimate_tokens(f"{spec.name}{spec.description}{spec.parameters}")
        for spec in run.agent.specs
    )
    return Measured(
        system=_estimate_tokens(conversation.system),
        tools=tools,
        conversation=texts,
        size=conversation.size,
    )


def _tokens_used(usage: Usage) -> JsonObject:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
    }


def _shortened(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Clip long tool results, so that the conversation is small enough to be sent."""
    return tuple(
        msgspec.structs.replace(message, text=clip(message.text, CLIPPED_RESULT))
        if isinstance(message, ToolMessage)
        else message
        for message in messages
    )


async def find_writer(run: Run, carryover: Carryover) -> Writer:
    """Return the model that writes the summaries of a run."""
    return await carryover.summarizer() or Writer.of(run)


def _without_carryover(text: str) -> str:
    """Return an earlier summary without its carryover, which is written anew."""
    for block in _CARRYOVER_BLOCKS:
        text = re.sub(rf"<{block}>\n.*?\n</{block}>", "", text, flags=re.DOTALL)
    return re.sub(r"</?earlier_summary>", "", text).strip()


def _recent(messages: tuple[Message, ...], budget: int) -> str:
    """Return the last messages, each clipped to a few lines."""
    length = max(40, min(CLIPPED_MESSAGE, budget // RECENT_MESSAGES - CLIP_OVERHEAD))
    lines = [
        f"{role_of(message)}: {clip(text, length)}"
        for message in messages[-RECENT_MESSAGES:]
        if (text := _text(message))
    ]
    return "\n".join(("<recent_messages>", *lines, "</recent_messages>"))


def clip(text: str, limit: int) -> str:
    """Remove the middle of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{count(len(text) - limit, 'character')} left out]\n{text[-half:]}"


def _text(message: Message) -> str:
    if isinstance(message, UserMessage):
        return "\n".join(getattr(part, "text", "[image]") for part in message.parts)
    if isinstance(message, AssistantMessage) and message.tool_calls:
        calls = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
        return f"{message.text}\n[calls {calls}]"
    return message.text


def _estimate_tokens(text: str) -> int:
    return len(text) // CHARACTERS_PER_TOKEN
