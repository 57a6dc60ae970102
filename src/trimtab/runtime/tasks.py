"""The tasks of a session: its sub-agents and its commands, as clients see and change them."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trimtab.agents.pool import USER
from trimtab.agents.subagent import Subagent
from trimtab.contracts.errors import ExitCode, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionWarning
from trimtab.contracts.ids import new_id, timestamp
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import Assignment
from trimtab.contracts.workspace import ShellInfo
from trimtab.loop.ledger import Ledger
from trimtab.session.projections.agents import AgentRecord

if TYPE_CHECKING:
    from trimtab.runtime.live import LiveSession

RECENT_OUTPUT = 4096
"""The number of bytes of a command's output that its progress shows."""


class SessionTasks:
    """The sub-agents and commands of one session. The session's id names its main agent."""

    def __init__(self, live: "LiveSession", main: Run) -> None:
        self._live = live
        self._main = main
        self._pool = live.controls.pool
        self._shells = live.controls.setup.workspace.shells

    def describe(self) -> list[JsonObject]:
        """Return all tasks as the protocol describes them, agents first."""
        agents = [
            self._describe_agent(record)
            for record in self._pool.records.values()
            if not record.removed
        ]
        return [*agents, *(describe_shell(shell) for shell in self._shells.list())]

    def describe_main(self) -> JsonObject:
        """Return the main agent as the protocol describes tasks; its id is the session's."""
        live = self._live
        return {
            "type": "agent",
            "id": live.id,
            "toolCallId": "",
            "agentType": "main",
            "description": live.projections.title.text,
            "prompt": self._main.origin.display or self._main.origin.text,
            "model": live.model,
            "resolvedModel": live.model,
            "executionMode": "sync",
            "status": "running" if live.busy else "idle",
            "startedAt": timestamp(live.started),
            "latestResponse": live.answer,
            "cwd": live.controls.options.cwd,
        }

    def find(self, task_id: str) -> JsonObject | None:
        return next((task for task in self.describe() if task["id"] == task_id), None)

    def _describe_agent(self, record: AgentRecord) -> JsonObject:
        agent = self._pool.agents.get(record.id)
        task: JsonObject = {
            "type": "agent",
            "id": record.id,
            "toolCallId": record.call_id,
            "agentType": record.type,
            "displayName": record.name or record.display_name,
            "description": record.description,
            "prompt": record.prompt or record.task,
            "resolvedModel": record.model,
            "model": record.model,
            "executionMode": "background" if record.background else "sync",
            "status": record.state,
            "startedAt": record.started_at,
            "activeStartedAt": record.active_since,
            "canPromoteToBackground": bool(agent and agent.busy and not agent.background),
            "callerId": record.caller_id or self._live.id,
        }
        if record.state == "interrupted":  # a status that the protocol does not know
            task |= {"status": "cancelled", "interrupted": True}
        if record.ended_at:
            task["idleSince" if record.state == "idle" else "completedAt"] = record.ended_at
        if record.response:
            task["latestResponse"] = record.response
        if record.answers and record.state in ("idle", "completed"):
            task["result"] = record.answers[-1]
        if record.error:
            task["error"] = record.error
        return task | self._describe_spending(record.id)

    def _describe_spending(self, agent_id: str) -> JsonObject:
        """Return what an agent has used, and what it and its own agents may use."""
        spent = self._live.projections.usage.agents.get(agent_id)
        found: JsonObject = {}
        if spent is not None:
            found["tokensUsed"] = (spent.input_tokens or 0) + (spent.output_tokens or 0)
            found["usdUsed"] = spent.cost_usd
        agent = self._pool.agents.get(agent_id)
        if agent is not None and isinstance(agent.run.agent.budget, Ledger):
            allowance = agent.run.agent.budget.allowance
            found |= {"maxTokens": allowance.tokens, "maxUsd": allowance.usd}
        return {name: value for name, value in found.items() if value is not None}

    async def start_agent(self, assignment: Assignment) -> str:
        """Start an agent in the background for a client; return its id. Raises `TrimtabError`."""
        agent = await Subagent.create(self._pool, self._main, new_id(), assignment)
        agent.begin()
        self._pool.changed()
        return agent.id

    def send(self, task_id: str, text: str) -> None:
        """Send an agent a message of a person or program. Raises `UsageError`."""
        prompt = Prompt(text=text, mode="immediate")
        if task_id == self._live.id:
            self._live.send(prompt)
            return
        record = self._pool.records.get(task_id)
        if record is None or record.removed:
            raise UsageError(f"No agent has the id {task_id!r}; list the tasks to see the ids.")
        self._pool.send(record, prompt)

    def stop(self, task_id: str) -> bool:
        """Begin to end an agent or a command; return False if it does not run."""
        if task_id == self._live.id:
            busy = self._live.busy
            self._live.stop()
            return busy
        if task_id in self._pool.records:
            return self._pool.stop(task_id, USER) is not None
        if any(s.shell_id == task_id and s.exit_code is None for s in self._shells.list()):
            task = asyncio.get_running_loop().create_task(self._shells.stop(task_id))
            self._main.tasks.add(task)
            task.add_done_callback(self._main.tasks.discard)
            return True
        return False

    def promote(self, task_id: str) -> bool:
        """Let the caller of an agent go on without it; return False if it does not wait."""
        return self._pool.promote(task_id)

    def find_promotable(self) -> JsonObject | None:
        """Return the first agent that its caller waits for."""
        tasks = (task for task in self.describe() if task.get("canPromoteToBackground"))
        return next(tasks, None)

    def remove(self, task_id: str) -> bool:
        """Take an agent that does not work off the list; return False if it cannot be removed."""
        return self._pool.remove(task_id)

    def progress(self, task_id: str) -> JsonObject | None:
        """Return what a task did last; None if it is unknown."""
        record = self._pool.records.get(task_id)
        if record is not None:
            lines: Sequence[JsonObject] = []
            if record.response:
                lines = [{"message": record.response, "timestamp": timestamp()}]
            return {"type": "agent", "recentActivity": list(lines)}
        for shell in self._shells.list():
            if shell.shell_id == task_id:
                output, _ = self._shells.peek(task_id, -RECENT_OUTPUT, RECENT_OUTPUT)
                text = output.decode("utf-8", "replace")
                return {"type": "shell", "recentOutput": text, "pid": shell.pid}
        return None

    def read_output(self, shell_id: str, start: int, size: int) -> tuple[str, int, int | None]:
        """Return a part of a command's output, where it ends, and the exit code if it ended.

        Raises `UsageError`.
        """
        for shell in self._shells.list():
            if shell.shell_id == shell_id:
                output, _ = self._shells.peek(shell_id, start, size)
                return output.decode("utf-8", "replace"), start + len(output), shell.exit_code
        raise UsageError(f"No command has the id {shell_id!r}; list the tasks to see the ids.")

    async def wait_change(self) -> None:
        """Wait until an agent or a background command begins or ends to work."""
        await self._pool.wait_change()

    async def wait_quiet(self) -> None:
        """Wait until neither an agent nor a command works in the background."""
        while self._live.has_background_work or self._live.busy:
            if self._live.busy:
                await self._live.finished()
            else:
                await self.wait_change()

    async def give_up(self, stop: Stop) -> Stop:
        """Stop what still works in the background; return why the run ended."""
        commands = self._live.background_commands
        stopped = await self._pool.stop_all()
        if commands:
            message = (
                f"{count(len(commands), 'command')} still ran in the background when the run "
                f"ended, and were stopped: {', '.join(shell.shell_id for shell in commands)}."
            )
            self._live.emit(SessionWarning(warning_type="background_commands", message=message))
        if not stopped:
            return stop
        message = (
            f"{count(stopped, 'agent')} still worked in the background and were stopped; raise "
            "COPILOT_TASK_WAIT_TIMEOUT_SECONDS, or resume the session and write to them."
        )
        self._live.emit(SessionWarning(warning_type="background_timeout", message=message))
        return Stop(reason="background_timeout", exit_code=ExitCode.INCOMPLETE, message=message)


def describe_shell(shell: ShellInfo) -> JsonObject:
    """Return a command as the protocol describes tasks."""
    ended = {None: "running", 0: "completed"}.get(shell.exit_code, "failed")
    return {
        "type": "shell",
        "id": shell.shell_id,
        "command": shell.command,
        "description": shell.description,
        "attachmentMode": "detached" if shell.mode == "detached" else "attached",
        "executionMode": "sync" if shell.foreground else "background",
        "status": ended,
        "startedAt": timestamp(time.time() - shell.elapsed),
        "pid": shell.pid,
        **({"agentId": shell.agent_id} if shell.agent_id else {}),
    }
