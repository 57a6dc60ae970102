"""The tool calls by which agents start other agents, read them, write to them and stop them."""

import asyncio
from collections.abc import Sequence

from trimtab.agents.pool import SubagentPool
from trimtab.agents.subagent import Subagent, describe_start
from trimtab.contracts.errors import TrimtabError, UsageError
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import AgentScope, Assignment, ToolResult
from trimtab.session.projections.agents import AgentRecord

STOP_SECONDS = 2.0
"""The longest time `stop_agent` waits for the end of an agent and its commands."""
PREVIEW_LENGTH = 80


class AgentCalls:
    """The agents of a session, as the agent that makes one tool call reaches them."""

    def __init__(self, pool: SubagentPool, caller: Run, call_id: str) -> None:
        self._pool = pool
        self._caller = caller
        self._call_id = call_id

    async def delegate(self, assignment: Assignment) -> ToolResult:
        try:
            agent = await Subagent.create(self._pool, self._caller, self._call_id, assignment)
        except TrimtabError as error:
            return ToolResult(text=f"No agent was started: {error.message}", kind="failure")
        if not assignment.background:
            return await agent.perform()
        agent.begin()
        self._pool.changed()
        return ToolResult(text=describe_start(agent.id, "works in the background"))

    async def read(self, agent_id: str, *, wait: float, since_turn: int) -> ToolResult:
        try:
            record = self._pool.find_record(agent_id)
        except UsageError as error:
            return refuse(error)
        agent = self._pool.agents.get(record.id)
        if wait and agent is not None and agent.busy:
            try:
                async with asyncio.timeout(wait):
                    await agent.ended()
            except TimeoutError:
                pass  # its state says that it still works
        return ToolResult(text=describe_record(record, since_turn))

    def list(self, scope: AgentScope, *, include_completed: bool) -> ToolResult:
        records = self._in_scope(scope, include_completed=include_completed)
        lines = [describe_line(record) for record in records]
        return ToolResult(text="\n".join(lines) or "No agents.")

    def _in_scope(self, scope: AgentScope, *, include_completed: bool) -> "Sequence[AgentRecord]":
        own = self._caller.agent
        parent = "" if own.caller_id == self._caller.session.id else own.caller_id
        return [
            record
            for record in self._pool.records.values()
            if record.id != own.id
            and not record.removed
            and (include_completed or record.state in ("running", "idle", "interrupted"))
            and (scope == "all" or record.caller_id == (own.id if scope == "children" else parent))
        ]

    def write(self, agent_ids: Sequence[str], scope: AgentScope | None, text: str) -> ToolResult:
        try:
            found = [self._pool.find_record(name) for name in agent_ids]
            if scope is not None:
                records = self._in_scope(scope, include_completed=False)
                found += [record for record in records if record.state != "interrupted"]
            recipients = {record.id: record for record in found}
            if not recipients:
                raise UsageError("There is no agent to write to; name one with agent_id.")
            if self._caller.agent.id in recipients:
                raise UsageError("An agent cannot write to itself; name another one.")
            for record in recipients.values():
                self._pool.count_message()
                self._pool.send(record, self._message(text))
        except UsageError as error:
            return refuse(error)
        return ToolResult(text=f"Sent to {count(len(recipients), 'agent')}.")

    def _message(self, text: str) -> Prompt:
        own = self._pool.records.get(self._caller.agent.id)
        sender = "the main agent" if own is None else f"the agent {own.name or own.type} ({own.id})"
        return Prompt(
            text=f"Message from {sender}:\n{text}",
            mode="immediate",
            source="agent",
            billable=False,
        )

    async def stop(self, agent_id: str) -> ToolResult:
        own = self._caller.agent.id
        try:
            record = self._pool.find_record(agent_id)
            if record.id == own:
                raise UsageError("An agent cannot stop itself; end your turn instead.")
        except UsageError as error:
            return refuse(error)
        task = self._pool.stop(record.id, own)
        if task is None:
            text = f"The agent {record.id} does not work; its state is {record.state}."
            return ToolResult(text=text, kind="failure")
        await asyncio.wait((task,), timeout=STOP_SECONDS)
        return ToolResult(text=f"The agent {record.id} was stopped.")


def refuse(error: TrimtabError) -> ToolResult:
    return ToolResult(text=error.message, kind="failure")


def describe_line(record: AgentRecord) -> str:
    """Return an agent as one line of a list."""
    about = " ".join((record.description or record.task).split())[:PREVIEW_LENGTH]
    name = f" {record.name}" if record.name else ""
    return f"{record.id}{name} ({record.type}): {record.state}; {about}"


def describe_record(record: AgentRecord, since_turn: int) -> str:
    """Return the state of an agent, and its answers after a turn."""
    lines = [describe_line(record), f"turns: {len(record.answers)}"]
    if record.error:
        lines.append(f"error: {record.error}")
    for number, answer in enumerate(record.answers, 1):
        if number > since_turn:
            lines.append(f"--- turn {number} ---\n{answer or '(no text)'}")
    if record.state == "running" and record.response:
        lines.append(f"--- last message so far ---\n{record.response}")
    return "\n".join(lines)
