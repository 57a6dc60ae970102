from pathlib import Path
from typing import Any

import msgspec
import pytest

from livekit import opened
from loopkit import call
from trimtab.contracts.events.codec import decode
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import PromptQueued, PromptWithdrawn, ToolRunning
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionPartialResult,
    ToolExecutionStart,
)
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.options import PermissionOptions
from trimtab.host.calls import describe_call
from trimtab.host.part_fold import PartFold
from trimtab.host.parts import Markdown, Part, Question, QueuedPrompt, ToolInvocation, UserPrompt


def event(data: EventData, agent_id: str | None = None) -> Event:
    return Event(
        type=data.wire_name,
        data=data,
        id=new_id(),
        timestamp=timestamp(),
        parent_id=None,
        ephemeral=data.is_ephemeral,
        agent_id=agent_id,
    )


def states(parts: list[Part]) -> list[str]:
    return [part.state for part in parts if isinstance(part, ToolInvocation)]


def fold(*data: EventData) -> list[Part]:
    folding = PartFold()
    return [part for item in data for part in folding.apply(event(item))]


def start(call_id: str = "c1", **arguments: Any) -> ToolExecutionStart:
    return ToolExecutionStart(tool_call_id=call_id, tool_name="bash", arguments=arguments)


ASKED = PermissionRequested(
    request_id="r1",
    permission_request={"kind": "shell", "toolCallId": "c1", "fullCommandText": "rm x"},
)


def test_a_tool_call_waits_while_its_own_permission_is_asked() -> None:
    folding = PartFold()
    folding.apply(event(start("c1", command="rm x")))
    folding.apply(event(start("c2", command="ls")))
    folding.apply(event(ToolRunning(tool_call_id="c2")))
    pending, question = folding.apply(event(ASKED))
    assert isinstance(pending, ToolInvocation)
    assert (pending.call_id, pending.state) == ("c1", "pending")
    assert isinstance(question, Question)
    assert (question.kind, question.done) == ("permission", False)
    assert {each.call_id: each.state for each in folding.open_calls} == {
        "c1": "pending",
        "c2": "running",
    }


def test_the_time_a_person_takes_to_answer_is_not_the_call_s() -> None:
    folding = PartFold()
    done = PermissionCompleted(request_id="r1", result={"kind": "approved"}, tool_call_id="c1")
    times = ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z", "2026-01-01T00:01:00.000Z")
    for item, time in zip((start("c1"), ASKED, done), times, strict=True):
        parts = folding.apply(msgspec.structs.replace(event(item), timestamp=time))
    assert isinstance(parts[-1], ToolInvocation)
    assert parts[-1].started == times[-1]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("approved", ["pending", "running"]), ("denied-interactively-by-user", ["pending"])],
)
def test_an_answer_lets_the_call_run_or_leaves_it_waiting_for_its_end(
    outcome: str, state: list[str]
) -> None:
    done = PermissionCompleted(request_id="r1", result={"kind": outcome}, tool_call_id="c1")
    parts = fold(start("c1"), ASKED, done)
    assert states(parts)[1:] == state
    answered = [part for part in parts if isinstance(part, Question)][-1]
    assert (answered.done, answered.answer) == (True, outcome)


def test_output_arrives_in_pieces_and_the_end_has_the_whole() -> None:
    parts = fold(
        start("c1", command="make"),
        ToolExecutionPartialResult(tool_call_id="c1", partial_output="one\n"),
        ToolExecutionPartialResult(tool_call_id="c1", partial_output="two\n"),
        ToolExecutionComplete(
            tool_call_id="c1",
            success=True,
            result={"content": "one\ntwo\n\n<exited with exit code 3>"},
        ),
    )
    calls = [part for part in parts if isinstance(part, ToolInvocation)]
    assert [each.state for each in calls] == ["pending", "running", "running", "completed"]
    assert [each.delta for each in calls] == ["", "one\n", "two\n", ""]
    assert calls[2].output == "one\ntwo\n"
    assert calls[-1].exit_code == 3
    assert calls[-1].ended
    assert len({each.key for each in calls}) == 1


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("denied", "denied"),
        ("rejected", "rejected"),
        ("interrupted", "interrupted"),
        ("failure", "failed"),
    ],
)
def test_the_state_of_a_failed_call_names_the_cause(code: str, state: str) -> None:
    end = ToolExecutionComplete(
        tool_call_id="c1", success=False, error={"message": "no", "code": code}
    )
    assert states(fold(start("c1"), end))[-1] == state


def test_a_waiting_prompt_is_sent_or_withdrawn() -> None:
    folding = PartFold()
    folding.apply(event(PromptQueued(message_id="m1", text="first", mode="immediate")))
    folding.apply(event(PromptQueued(message_id="m2", text="second")))
    assert [(each.text, each.steering) for each in folding.waiting_prompts] == [
        ("first", True),
        ("second", False),
    ]
    (gone,) = folding.apply(event(PromptWithdrawn(message_id="m2")))
    assert isinstance(gone, QueuedPrompt)
    assert gone.state == "withdrawn"
    assert [each.text for each in folding.waiting_prompts] == ["first"]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"command": "npm test"}, "bash npm test"),
        ({"command": "cat <<X\nline\nX"}, "bash cat <<X …"),
        ({}, "bash"),
        ("not an object", "bash"),
    ],
)
def test_a_call_is_described_in_one_line(arguments: Any, title: str) -> None:
    assert describe_call("bash", arguments) == title


async def test_replaying_a_log_shows_what_was_shown_live(tmp_path: Path) -> None:
    live_parts: dict[str, Part] = {}
    folding = PartFold()

    def show(shown: Event, _line: bytes) -> None:
        live_parts.update({part.key: part for part in folding.apply(shown)})

    replies = [
        {"text": "I will look.", "tools": [call("bash", command="echo hi", description="x")]},
        {"text": "It says hi."},
    ]
    allowed = PermissionOptions(allow_all_tools=True)
    async with opened(tmp_path, replies, permissions=allowed) as (live, _, _provider):
        live.subscribe(show)
        await live.ask("go")
        replayed: dict[str, Part] = {}
        again = PartFold()
        for line in live.read_events():
            replayed.update({part.key: part for part in again.apply(decode(bytes(line)))})
    kinds = (Markdown, ToolInvocation, UserPrompt)

    def comparable(parts: dict[str, Part]) -> list[Any]:
        shown = [part for part in parts.values() if isinstance(part, kinds)]
        return [
            (type(part).__name__, part.key, getattr(part, "text", getattr(part, "output", "")))
            for part in shown
        ]

    assert comparable(live_parts) == comparable(replayed)
    assert [name for name, _, _ in comparable(live_parts)] == [
        "UserPrompt",
        "Markdown",
        "ToolInvocation",
        "Markdown",
    ]
