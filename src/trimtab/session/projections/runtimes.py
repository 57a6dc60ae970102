"""The runtimes that answered in a session, and their own sessions, by agent."""

from typing import ClassVar, Literal

import msgspec

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.own import ModelCall, RuntimeSession, RuntimeStarted
from trimtab.contracts.events.session import SessionSnapshotRewind


class UsedRuntime(msgspec.Struct, frozen=True):
    """The runtime that answered an agent's last prompt."""

    runtime: str
    models: Literal["own", "host"] = "own"
    session_id: str | None = None


class Runtimes:
    """The last runtime of each agent; the main agent's id is None."""

    reads: ClassVar[frozenset[str]] = frozenset(
        (
            "trimtab.runtime_started",
            "trimtab.runtime_session",
            "trimtab.model_call",
            "session.snapshot_rewind",
        )
    )

    def __init__(self) -> None:
        self.last: dict[str | None, UsedRuntime] = {}
        self._sessions: dict[tuple[str | None, str], str] = {}

    def apply(self, event: Event) -> None:
        agent = event.agent_id
        match event.data:
            case SessionSnapshotRewind():
                self._sessions.clear()
            case ModelCall(purpose="main" | "subagent"):
                self._keep_only(agent, "")
            case RuntimeStarted(runtime=runtime, models=models):
                self._keep_only(agent, runtime)
                known = self._sessions.get((agent, runtime))
                source: Literal["own", "host"] = "host" if models == "host" else "own"
                self.last[agent] = UsedRuntime(runtime, source, known)
            case RuntimeSession(runtime=runtime, session_id=session_id):
                self._sessions[agent, runtime] = session_id
                before = self.last.get(agent) or UsedRuntime(runtime)
                self.last[agent] = msgspec.structs.replace(before, session_id=session_id)

    def session_of(self, agent: str | None, runtime: str) -> str | None:
        """Return the id of the runtime's own session, if it knows all of the conversation.

        It does not after a rewind, or if somebody else has answered since.
        """
        return self._sessions.get((agent, runtime))

    def _keep_only(self, agent: str | None, runtime: str) -> None:
        """Forget the sessions of other runtimes: they miss what is said now."""
        for key in [key for key in self._sessions if key[0] == agent and key[1] != runtime]:
            del self._sessions[key]
