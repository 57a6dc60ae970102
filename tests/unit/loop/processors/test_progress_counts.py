"""Repeats are counted exactly: by message, by time waited, and anew after anything new."""

from typing import Any

import pytest

from loopkit import EchoTool, make_run
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.messages import ToolCall
from trimtab.contracts.messages import ToolMessage as Result
from trimtab.contracts.processor import PendingCall, Stop
from trimtab.contracts.run import Prompt
from trimtab.contracts.tool import ToolResult
from trimtab.loop.processors.progress import Progress, fingerprint, last_results

DONE = Stop(reason="end_turn")


class Repeats:
    """Calls of a model, and what the processor says before the next request."""

    def __init__(self, limit: int | None = None, **options: Any) -> None:
        self.now = 1000.0
        self.progress = Progress(limit, clock=lambda: self.now, **options)
        self.run = make_run([], mode="autopilot")

    async def call(
        self, text: str = "a", result: str = "same", seconds: float = 0.0
    ) -> Stop | None:
        """Let the model make one call that takes so long."""
        call = ToolCall(id="1", name="echo", arguments=f'{{"text":"{text}"}}')
        pending = PendingCall(call=call, tool=EchoTool(), args={"text": text})
        answer = await self.progress.before_tool(self.run, pending)
        self.now += seconds
        if isinstance(answer, PendingCall):
            await self.progress.after_tool(self.run, pending, ToolResult(text=result))
        else:
            result = answer.text
        request = {"toolCallId": "1", "name": "echo", "arguments": {"text": text}}
        self.run.session.emit(AssistantMessage(message_id="m", content="", tool_requests=[request]))
        self.run.session.emit(
            ToolExecutionComplete(tool_call_id="1", success=True, result={"content": result})
        )
        return await self.progress.before_request(self.run)

    def warnings(self) -> list[tuple[str, str]]:
        events = self.run.session.of("session.warning")  # type: ignore[attr-defined]
        return [(data.warning_type, data.message) for data in events]


async def test_a_run_is_stopped_at_its_limit_and_says_how_often_it_repeated_itself() -> None:
    repeats = Repeats(3)
    assert [await repeats.call() for _ in range(2)] == [None, None]
    stop = await repeats.call()
    assert stop is not None
    assert (stop.reason, stop.exit_code) == ("no_progress", 3)
    assert stop.message.startswith("Stopped: echo was called 3 times with the same arguments")
    assert repeats.warnings() == [("no_progress", stop.message)]


@pytest.mark.parametrize(
    ("seconds", "stopped"), [(0.0, True), (4.9, True), (5.0, False), (60.0, False)]
)
async def test_a_call_that_takes_five_seconds_waits_and_counts_less(
    seconds: float, stopped: bool
) -> None:
    repeats = Repeats(3)
    stops = [await repeats.call(seconds=seconds) for _ in range(3)]
    assert (stops[-1] is not None) is stopped


async def test_ten_waits_count_like_one_call() -> None:
    repeats = Repeats(1)
    assert await repeats.call(seconds=10) is None
    assert await repeats.call() is not None  # a tenth and one are more than the limit


async def test_a_call_whose_start_was_not_seen_does_not_wait() -> None:
    repeats = Repeats(2)
    call = ToolCall(id="1", name="echo", arguments='{"text":"a"}')
    pending = PendingCall(call=call, tool=EchoTool(), args={"text": "a"})
    assert await repeats.call() is None
    await repeats.progress.after_tool(repeats.run, pending, ToolResult(text="same"))
    assert await repeats.call() is not None


async def test_waiting_is_forgotten_with_the_next_request() -> None:
    repeats = Repeats(2)
    assert await repeats.call(seconds=10) is None
    assert await repeats.call() is None
    assert await repeats.call() is not None


async def test_a_message_is_counted_once_however_often_it_is_sent() -> None:
    repeats = Repeats(2)
    assert await repeats.call() is None
    for _ in range(5):
        assert await repeats.progress.before_request(repeats.run) is None
    assert await repeats.call() is not None


async def test_a_new_call_or_a_new_result_starts_the_count_anew() -> None:
    for text, result in (("b", "same"), ("a", "other")):
        repeats = Repeats(3)
        for _ in range(2):
            assert await repeats.call() is None
        assert await repeats.call(text, result) is None
        assert await repeats.call() is None  # one from before is still known
        assert await repeats.call() is not None


async def test_without_messages_nothing_is_counted() -> None:
    repeats = Repeats(1)
    assert await repeats.progress.before_request(repeats.run) is None
    assert last_results([])[0] is None


@pytest.mark.parametrize(("limit", "ends"), [(0, False), (1, True), (None, True)])
async def test_empty_answers_end_autopilot_unless_the_limit_is_off(
    limit: int | None, ends: bool
) -> None:
    repeats = Repeats(limit)
    stops = [await repeats.progress.before_stop(repeats.run, DONE) for _ in range(21)]
    assert stops[:20] == [None] * 20
    assert (stops[20] is not None) is ends
    if stops[20] is not None:
        assert stops[20].message.startswith("Stopped: autopilot continued 20 times and the agent")
        assert repeats.warnings()[-1] == ("no_progress", stops[20].message)


async def test_anything_new_starts_the_count_of_empty_answers_anew() -> None:
    repeats = Repeats()
    for _ in range(20):
        assert await repeats.progress.before_stop(repeats.run, DONE) is None
    await repeats.call()
    before = len(repeats.warnings())
    for number in range(9):
        assert await repeats.progress.before_stop(repeats.run, DONE) is None
        assert len(repeats.warnings()) == before + (number == 8), number
    assert repeats.warnings()[-1] == ("stall_nudge", "It says nothing new.")
    await repeats.call()
    for _ in range(12):
        assert await repeats.progress.before_stop(repeats.run, DONE) is None
    assert await repeats.progress.before_stop(repeats.run, DONE) is not None


async def test_the_model_is_told_at_the_eighth_repeat_and_the_call_is_closed_at_the_14th() -> None:
    repeats = Repeats(25)
    told = []
    for _ in range(16):
        assert await repeats.call() is None
        told.append([kind for kind, _ in repeats.warnings()])
    assert told[6] == []
    assert told[7] == told[12] == ["stall_nudge"]
    assert told[13] == told[15] == ["stall_nudge", "stall_change"]
    messages = [message for _, message in repeats.warnings()]
    assert messages == [
        "echo had the same result 8 times; the model is told.",
        "echo had the same result 14 times; the call is closed.",
    ]
    texts = [
        data.transformed_content
        for data in repeats.run.session.of("user.message")  # type: ignore[attr-defined]
    ]
    assert "You have called echo 8 times" in texts[0]
    assert "the same result 14 times" in texts[1]


async def test_steps_are_taken_also_if_a_wait_makes_the_count_uneven() -> None:
    repeats = Repeats(25)
    await repeats.call(seconds=10)
    for number in range(1, 15):
        await repeats.call()
        steps = [kind for kind, _ in repeats.warnings()]
        assert steps == ["stall_nudge", "stall_change"][: (number >= 8) + (number >= 14)], number


async def test_a_closed_call_says_how_often_it_was_made_and_counts_on() -> None:
    repeats = Repeats(16)
    for _ in range(14):
        await repeats.call()
    call = ToolCall(id="1", name="echo", arguments='{"text":"a"}')
    pending = PendingCall(call=call, tool=EchoTool(), args={})
    answer = await repeats.progress.before_tool(repeats.run, pending)
    assert isinstance(answer, ToolResult)
    assert (answer.kind, answer.text) == (
        "failure",
        "This call is closed: it had the same result 14 times. Go another way.",
    )
    assert await repeats.call() is None
    stop = await repeats.call()
    assert stop is not None
    assert "called 16 times" in stop.message


async def test_a_call_that_waits_is_told_of_but_never_closed() -> None:
    repeats = Repeats(25)
    for _ in range(200):
        assert await repeats.call(seconds=10) is None
    assert [kind for kind, _ in repeats.warnings()] == ["stall_nudge"]


async def test_a_prompt_of_a_person_opens_closed_calls_and_forgets_repeats() -> None:
    repeats = Repeats(25)
    for _ in range(14):
        await repeats.call()
    await repeats.progress.on_prompt(repeats.run, Prompt(text="go on", source="user"))
    for _ in range(7):
        await repeats.call()
    assert [kind for kind, _ in repeats.warnings()] == ["stall_nudge", "stall_change"]
    await repeats.call()
    assert [kind for kind, _ in repeats.warnings()][2:] == ["stall_nudge"]


async def test_a_prompt_of_a_person_starts_the_count_of_empty_answers_anew() -> None:
    repeats = Repeats()
    for _ in range(15):
        await repeats.progress.before_stop(repeats.run, DONE)
    await repeats.progress.on_prompt(repeats.run, Prompt(text="go on", source="user"))
    before = len(repeats.warnings())
    for number in range(1, 13):
        assert await repeats.progress.before_stop(repeats.run, DONE) is None
        assert len(repeats.warnings()) == before + (number >= 8), number  # told once


async def test_a_stop_counts_the_call_before_something_new_and_those_after_it() -> None:
    repeats = Repeats(3)
    for text in ("a", "a", "b", "a"):
        assert await repeats.call(text) is None
    stop = await repeats.call()
    assert stop is not None
    assert "called 3 times" in stop.message


@pytest.mark.parametrize(
    ("attended", "mode", "limit"),
    [(False, "interactive", 25), (True, "interactive", None), (True, "autopilot", 25)],
)
async def test_without_a_limit_25_repeats_end_a_run_that_nobody_watches(
    attended: bool, mode: str, limit: int | None
) -> None:
    repeats = Repeats(None, attended=attended)
    repeats.run = make_run([], mode=mode)
    stops = [await repeats.call() for _ in range(26)]
    first = next((number for number, stop in enumerate(stops, 1) if stop is not None), None)
    assert first == limit


def test_names_of_saved_output_are_the_same_result_and_other_names_are_not() -> None:
    call = ToolCall(id="1", name="echo", arguments="{}")

    def of(text: str, *, failed: bool = False) -> int:
        return fingerprint(call, Result(call_id="1", text=text, failed=failed))

    assert of("see /s/shell-1.txt") == of("see /s/shell-2.txt")
    assert of("see /s/tool-output-1.txt") == of("see /s/tool-output-2.txt")
    assert of("see notes-1.txt") != of("see notes-2.txt")
    assert of("same") != of("same", failed=True)
    assert of("see shell-1.txt") != of("see tool-result-1.txt")
