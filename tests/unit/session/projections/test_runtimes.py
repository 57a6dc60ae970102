"""The runtimes that answered in a session, and which of their sessions know all of it."""

from trimtab.contracts.events.envelope import Event, EventData
from trimtab.contracts.events.own import ModelCall, RuntimeSession, RuntimeStarted
from trimtab.contracts.events.session import SessionSnapshotRewind
from trimtab.session.projections.runtimes import Runtimes, UsedRuntime


def fold(*events: EventData | tuple[str, EventData]) -> Runtimes:
    runtimes = Runtimes()
    for given in events:
        agent, data = given if isinstance(given, tuple) else (None, given)
        runtimes.apply(
            Event(
                type=data.wire_name, data=data, id="", timestamp="", parent_id=None, agent_id=agent
            )
        )
    return runtimes


def call(purpose: str) -> ModelCall:
    return ModelCall(purpose=purpose, model="m", status="success")


BEGUN = RuntimeStarted(runtime="codex")
KNOWN = RuntimeSession(runtime="codex", session_id="s1")


def test_the_last_runtime_is_known_with_its_session() -> None:
    assert fold(BEGUN).last == {None: UsedRuntime("codex", "own", None)}
    assert fold(BEGUN, KNOWN).last == {None: UsedRuntime("codex", "own", "s1")}
    assert fold(KNOWN).last == {None: UsedRuntime("codex", "own", "s1")}
    again = fold(BEGUN, KNOWN, RuntimeStarted(runtime="codex", models="host"))
    assert again.last == {None: UsedRuntime("codex", "host", "s1")}
    odd = fold(RuntimeStarted(runtime="codex", models="other"))
    assert odd.last == {None: UsedRuntime("codex", "own", None)}


def test_a_session_is_known_until_somebody_else_answers() -> None:
    for other, kept in (
        (call("title"), True),
        (call("compaction"), True),
        (call("main"), False),
        (call("subagent"), False),
        (RuntimeStarted(runtime="codex"), True),
        (RuntimeStarted(runtime="claude"), False),
        (SessionSnapshotRewind(up_to_event_id="x", events_removed=1), False),
    ):
        found = fold(BEGUN, KNOWN, other)
        assert found.session_of(None, "codex") == ("s1" if kept else None)


def test_what_one_agent_does_leaves_the_sessions_of_others_alone() -> None:
    found = fold(BEGUN, KNOWN, ("a", BEGUN), ("a", KNOWN), ("a", call("subagent")))
    assert found.session_of(None, "codex") == "s1"
    assert found.session_of("a", "codex") is None
    assert set(found.last) == {None, "a"}
    both = fold(BEGUN, KNOWN, RuntimeSession(runtime="claude", session_id="s2"))
    assert (both.session_of(None, "codex"), both.session_of(None, "claude")) == ("s1", "s2")
