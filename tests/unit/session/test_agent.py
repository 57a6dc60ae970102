"""A sub-agent's view of a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.own import ModelCall
from trimtab.contracts.events.subagent import SubagentStarted
from trimtab.contracts.events.tool import ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.session.agent import AgentSession
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    log = EventLog.create(str(tmp_path / "events.jsonl"))
    yield Session("s", log, Projections())
    log.close()


def started(session: Session, name: str) -> AgentSession:
    agent = AgentSession(session, name, f"call-{name}")
    agent.emit(
        SubagentStarted(
            tool_call_id=f"call-{name}",
            agent_name="task",
            agent_display_name="Task",
            agent_description="x",
        )
    )
    return agent


def test_an_agent_has_a_conversation_of_its_own_and_marks_its_messages(session: Session) -> None:
    one, two = started(session, "one"), started(session, "two")
    one.emit(UserMessage(content="task one"))
    event = one.emit(AssistantMessage(message_id="m", content="answer"))
    two.emit(UserMessage(content="task two"))
    session.emit(UserMessage(content="main"))
    assert (event.agent_id, event.data.parent_tool_call_id) == ("one", "call-one")
    assert len(one.conversation.messages) == 2
    assert len(two.conversation.messages) == len(session.conversation.messages) == 1


def test_an_agent_that_goes_on_remembers_what_it_did(session: Session) -> None:
    before = started(session, "one")
    before.emit(UserMessage(content="task one"))
    before.emit(AssistantMessage(message_id="m", content="answer"))
    started(session, "two").emit(UserMessage(content="task two"))
    before.leave()
    session.emit(UserMessage(content="main"))
    again = AgentSession(session, "one", "call-later")
    assert list(again.conversation.messages) == list(before.conversation.messages)
    again.emit(UserMessage(content="more"))
    assert len(again.conversation.messages) == 3
    assert len(before.conversation.messages) == 2, "who left hears nothing more"


def test_calls_and_prompt_tokens_are_counted(session: Session) -> None:
    agent = started(session, "one")
    for tokens in (100, 250, None):
        agent.emit(ModelCall(purpose="subagent", model="m", status="success", input_tokens=tokens))
    agent.emit(ToolExecutionStart(tool_call_id="c", tool_name="view"))
    assert (agent.prompt_tokens, agent.tool_calls) == (250, 1)


def test_an_agent_begins_with_nothing_and_counts_its_own_work_only(session: Session) -> None:
    agent = AgentSession(session, "one", "call")
    assert (agent.id, agent.agent_id, agent.tool_calls, agent.prompt_tokens) == (
        "s",
        "one",
        0,
        None,
    )
    session.emit(ToolExecutionStart(tool_call_id="c", tool_name="view"))
    session.emit(ModelCall(purpose="main", model="m", status="success", input_tokens=9))
    assert (agent.tool_calls, agent.prompt_tokens) == (0, None)
    for _ in range(3):
        agent.emit(ToolExecutionStart(tool_call_id="c", tool_name="view"))
    assert agent.tool_calls == 3


def test_an_agent_marks_events_unless_they_are_marked_already(session: Session) -> None:
    agent = AgentSession(session, "one", "call")
    marked = agent.emit(AssistantMessage(message_id="m", content="x", parent_tool_call_id="other"))
    assert marked.data.parent_tool_call_id == "other"
    inner = agent.emit(UserMessage(content="x"), agent_id="inner", ephemeral=True)
    assert (inner.agent_id, inner.ephemeral) == ("inner", True)
    assert len(agent.conversation.messages) == 1
    call = ModelCall(purpose="subagent", model="m", status="success")
    assert agent.emit(call).data is call


async def test_an_agent_waits_for_the_disk_of_its_session(session: Session) -> None:
    agent = AgentSession(session, "one", "call")
    agent.emit(UserMessage(content="x"))
    await agent.synced()
