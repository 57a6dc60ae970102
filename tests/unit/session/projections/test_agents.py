"""Sub-agents of a session, folded from its events."""

from typing import Any

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import AgentChanged
from trimtab.contracts.events.subagent import SubagentCompleted, SubagentFailed, SubagentStarted
from trimtab.contracts.events.user import UserMessage
from trimtab.session.projections.agents import AgentRecord, Agents


def fold(*events: EventData, agent: str | None = "a") -> Agents:
    agents = Agents()
    for number, data in enumerate(events):
        agents.apply(
            Event(
                type=data.wire_name,
                data=data,
                id=str(number),
                timestamp=f"t{number}",
                parent_id=None,
                agent_id=agent,
            )
        )
    return agents


def record(*events: EventData) -> AgentRecord:
    (found,) = fold(*events).records.values()
    return found


def started(**fields: Any) -> SubagentStarted:
    given = {
        "tool_call_id": "c",
        "agent_name": "explore",
        "agent_display_name": "Explorer",
        "agent_description": "x",
    }
    return SubagentStarted(**given | fields)


def completed(**fields: Any) -> SubagentCompleted:
    return SubagentCompleted(
        tool_call_id="c", agent_name="explore", agent_display_name="Explorer", **fields
    )


FAILED = SubagentFailed(
    tool_call_id="c", agent_name="explore", agent_display_name="Explorer", error="broke"
)


def says(text: str) -> AssistantMessage:
    return AssistantMessage(message_id="m", content=text)


def test_an_agent_begins_as_it_was_started() -> None:
    begun = started(
        parent_id="p",
        model="m",
        execution_mode="background",
        task_name="look",
        task_description="look around",
    )
    assert record(begun) == AgentRecord(
        id="a",
        type="explore",
        caller_id="p",
        call_id="c",
        started_at="t0",
        name="look",
        display_name="Explorer",
        description="look around",
        model="m",
        background=True,
        state="running",
        active_since="t0",
        answers=[],
    )
    plain = record(started())
    assert (plain.caller_id, plain.name, plain.background, plain.removed) == ("", "", False, False)


def test_events_of_the_main_agent_and_of_strangers_make_no_record() -> None:
    assert fold(started(), says("x"), agent=None).records == {}
    assert fold(says("x"), completed()).records == {}


def test_an_agent_remembers_its_task_its_last_prompt_and_its_last_text() -> None:
    found = record(
        started(),
        UserMessage(content="first"),
        UserMessage(content="of a tool", source="tool"),
        says("one"),
        UserMessage(content="second"),
        says("two"),
        says(""),
    )
    assert (found.task, found.prompt, found.response) == ("first", "second", "two")
    assert (found.state, found.answers) == ("running", [])


def test_an_agent_ends_in_one_of_several_ways() -> None:
    for events, state, error in (
        ((started(), completed()), "completed", ""),
        ((started(execution_mode="background"), completed()), "idle", ""),
        ((started(execution_mode="sync"), completed()), "completed", ""),
        ((started(), completed(cancelled=True)), "cancelled", ""),
        ((started(execution_mode="background"), completed(cancelled=True)), "cancelled", ""),
        ((started(), FAILED), "failed", "broke"),
        ((started(), AgentChanged(change="interrupted")), "interrupted", ""),
    ):
        found = record(*events)
        assert (found.state, found.error, found.ended_at) == (state, error, "t1")
        assert found.answers == [""]


def test_an_agent_that_goes_on_keeps_its_answers_and_begins_anew() -> None:
    found = record(
        started(task_name="look", task_description="around"),
        says("one"),
        FAILED,
        AgentChanged(change="removed"),
        started(agent_display_name="Other", model="n", execution_mode="background"),
    )
    assert (found.state, found.error, found.removed, found.response) == ("running", "", False, "")
    assert (found.started_at, found.active_since, found.ended_at) == ("t0", "t4", "")
    assert (found.name, found.description, found.display_name) == ("look", "around", "Other")
    assert (found.model, found.background, found.answers) == ("n", True, ["one"])


def test_an_agent_is_promoted_and_removed() -> None:
    found = record(started(), AgentChanged(change="promoted"))
    assert (found.background, found.state, found.ended_at) == (True, "running", "")
    found = record(started(), AgentChanged(change="promoted"), completed())
    assert found.state == "idle"
    found = record(started(), completed(), AgentChanged(change="removed"))
    assert (found.removed, found.state) == (True, "completed")
    assert record(started(), AgentChanged(change="unknown")) == record(started())
