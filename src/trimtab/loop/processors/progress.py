"""Notices a run that makes no progress: nudges it, changes its way, and stops it at last."""

import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from trimtab.contracts.errors import ExitCode
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.messages import AssistantMessage, Message, ToolCall, ToolMessage
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import ToolResult

DEFAULT_LIMIT = 25
"""The number of times a call may have the same result if nobody watches."""
NUDGE_AT, CHANGE_AT = 8, 14
"""The number of repeats at which the model is told of them, and at which the call is closed."""
MAX_STALE = 20
"""The number of continuations without anything new."""
WAITING_SECONDS = 5.0
"""The duration from which a call counts as waiting for something."""
WAITING_WEIGHT = 0.1
"""Waiting calls count less: an hour's build is polled more often than 25 times."""

STARTS_AGENTS = "task"
"""The tool that starts agents."""

_SAVED_OUTPUT = r"\b(shell|tool-output|tool-result)-[\w-]+\.txt"
"""Names of files with saved output, which differ from call to call."""


NUDGE = (
    "<no_progress>\nYou have called {call} {times} with the same arguments and the same result, "
    "and nothing else changed. If you wait for something, wait longer in one call. Otherwise "
    "find out why it does not change, and try another way.\n</no_progress>"
)
NUDGE_TEXTS = (
    "<no_progress>\nYou have answered {times} in a row without doing anything new. Do what is "
    "left to do, or say that you are blocked and why.\n</no_progress>"
)
CHANGED_WAY = (
    "<no_progress>\n{call} with these arguments is closed from now on: it had the same result "
    "{times}. Work out afresh what the task needs, from what you know, and go another way. If "
    "there is none, say what is missing and stop.\n</no_progress>"
)
CLOSED = "This call is closed: it had the same result {times}. Go another way."

ChangeWay = Callable[[Run], Awaitable[str]]
"""Gives a run that is stuck another effort or model and a fresh context; returns what it did."""


class Progress(Processor):
    """Stops a run when a call has had the same result `limit` times and nothing new happened.

    Before that, the model is told that it repeats itself, and later its way is changed: the call
    is closed, and `change_way` gives it another effort or model. Each step is an event.

    A call or result that did not occur before in this prompt is new. So a test that fails the same
    way between different edits is no repetition, and neither are two hundred similar edits. Every
    result counts, also that of a denied call or of one with invalid arguments. A limit of None
    means 25, or no limit if a person watches (`attended`) outside autopilot; 0 means no limit.
    """

    def __init__(
        self,
        limit: int | None = None,
        *,
        attended: bool = False,
        change_way: ChangeWay | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._attended = attended
        self._change_way = change_way
        self._clock = clock
        self._closed: dict[tuple[str, str], int] = {}
        """Closed calls (name and arguments), and the fingerprint they had."""
        self._steps: dict[int, str] = {}
        """The last step taken for a fingerprint: nudge or change."""
        self._scores: dict[int, float] = {}
        self._times: dict[int, int] = {}
        self._start_times: dict[str, float] = {}
        self._waiting: set[str] = set()
        self._counted: AssistantMessage | None = None
        self._fresh = False
        self._stale = 0

    async def on_prompt(self, run: Run, prompt: Prompt) -> Prompt:
        if prompt.source == "user":
            self._scores.clear()
            self._times.clear()
            self._closed.clear()
            self._steps.clear()
            self._stale = 0
        return prompt

    async def before_tool(self, run: Run, pending: PendingCall) -> PendingCall | ToolResult:
        key = self._closed.get((pending.call.name, pending.call.arguments))
        if key is not None:
            times = count(self._times[key], "time")
            return ToolResult(text=CLOSED.format(times=times), kind="failure")
        self._start_times[pending.call.id] = self._clock()
        return pending

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        call_id, now = pending.call.id, self._clock()
        if now - self._start_times.pop(call_id, now) >= WAITING_SECONDS:
            self._waiting.add(call_id)
        return result

    async def before_request(self, run: Run) -> Stop | None:
        limit = self._find_limit(run)
        if not limit:
            return None
        stop = None
        message, results = last_results(run.session.conversation.messages)
        if message is not None and message is not self._counted:
            self._counted = message
            refused_start = False
            for call, result in results:
                if is_refused_start(call, result):
                    if refused_start:  # many at once are one attempt
                        continue
                    refused_start = True
                score = self._count(call, result)
                if score >= limit:
                    stop = self._stop(run, call, result)
                else:
                    await self._step(run, call, self._key(call, result), score)
        self._start_times.clear()
        self._waiting.clear()
        return stop

    async def before_stop(self, run: Run, stop: Stop) -> Stop | None:
        """In autopilot, stop after too many continuations without anything new."""
        if run.agent.mode != "autopilot" or self._limit == 0:
            return None
        self._stale = 0 if self._fresh else self._stale + 1
        self._fresh = False
        if self._stale == NUDGE_AT:
            times = count(self._stale, "time")
            self._tell(run, "stall_nudge", NUDGE_TEXTS.format(times=times), "It says nothing new.")
        if self._stale <= MAX_STALE:
            return None
        message = (
            f"Stopped: autopilot continued {MAX_STALE} times and the agent did nothing new; "
            "resume the session with clearer instructions."
        )
        run.session.emit(SessionWarning(warning_type="no_progress", message=message))
        return Stop(reason="no_progress", exit_code=ExitCode.INCOMPLETE, message=message)

    def _find_limit(self, run: Run) -> int:
        if self._limit is not None:
            return self._limit
        return 0 if self._attended and run.agent.mode != "autopilot" else DEFAULT_LIMIT

    def _count(self, call: ToolCall, result: ToolMessage) -> float:
        """Return how often this call had this result since anything new, waiting weighted less."""
        key = self._key(call, result)
        if key not in self._scores:
            self._fresh = True
            self._scores = dict.fromkeys(self._scores, 1.0)
            self._times = dict.fromkeys(self._times, 1)
            self._steps.clear()
            self._closed.clear()
        weight = WAITING_WEIGHT if call.id in self._waiting else 1.0
        self._scores[key] = self._scores.get(key, 0.0) + weight
        self._times[key] = self._times.get(key, 0) + 1
        return self._scores[key]

    def _key(self, call: ToolCall, result: ToolMessage) -> int:
        """Return the fingerprint of a call; a closed call keeps the one it had."""
        return self._closed.get((call.name, call.arguments)) or fingerprint(call, result)

    async def _step(self, run: Run, call: ToolCall, key: int, score: float) -> None:
        """Take the next step of the ladder for a call that is repeated."""
        times = count(self._times[key], "time")
        taken = self._steps.get(key)
        waits = call.id in self._waiting  # waiting is legitimate, and must stay possible
        if score >= CHANGE_AT and taken != "change" and not waits:
            self._steps[key] = "change"
            self._closed[call.name, call.arguments] = key
            done = await self._change_way(run) if self._change_way else ""
            about = f"{call.name} had the same result {times}; the call is closed.{done}"
            self._tell(run, "stall_change", CHANGED_WAY.format(call=call.name, times=times), about)
        elif score >= NUDGE_AT and taken is None:
            self._steps[key] = "nudge"
            about = f"{call.name} had the same result {times}; the model is told."
            self._tell(run, "stall_nudge", NUDGE.format(call=call.name, times=times), about)

    def _tell(self, run: Run, step: str, text: str, about: str) -> None:
        run.session.emit(SessionWarning(warning_type=step, message=about))
        run.session.emit(UserMessage(content="", transformed_content=text, source="no-progress"))

    def _stop(self, run: Run, call: ToolCall, result: ToolMessage) -> Stop:
        repeats = count(self._times[self._key(call, result)], "time")
        message = (
            f"Stopped: {call.name} was called {repeats} with the same arguments and the same "
            "result, and nothing else changed; resume the session with clearer instructions, or "
            "raise --max-repeats."
        )
        run.session.emit(SessionWarning(warning_type="no_progress", message=message))
        return Stop(reason="no_progress", exit_code=ExitCode.INCOMPLETE, message=message)


def is_refused_start(call: ToolCall, result: ToolMessage) -> bool:
    """Return True for an agent that was not started."""
    return call.name == STARTS_AGENTS and result.failed


def fingerprint(call: ToolCall, result: ToolMessage) -> int:
    """Return a hash of a call and its result.

    What an agent was to do makes no difference if it was not started: agents that start agents
    would go on asking without end.
    """
    text = result.text
    if is_refused_start(call, result):
        return hash((call.name, text))
    if ".txt" in text:
        text = re.sub(_SAVED_OUTPUT, r"\1", text)
    return hash((call.name, call.arguments, result.failed, text))


def last_results(
    messages: Sequence[Message],
) -> tuple[AssistantMessage | None, Iterator[tuple[ToolCall, ToolMessage]]]:
    """Return the last message of the model, and its calls with their results."""
    results: dict[str, ToolMessage] = {}
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results[message.call_id] = message
        elif isinstance(message, AssistantMessage):
            calls = message.tool_calls
            return message, ((call, results[call.id]) for call in calls if call.id in results)
    return None, iter(())
