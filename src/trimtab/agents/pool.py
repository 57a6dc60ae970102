"""The sub-agents of a session: which may start, how many at once, and what is sent to them."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from trimtab.agents.agent import agent_of
from trimtab.agents.setup import SessionSetup
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import ModelError, TrimtabError, UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.own import AgentChanged
from trimtab.contracts.events.session import SessionError, SessionInfo
from trimtab.contracts.events.setup import SessionBackgroundTasksChanged
from trimtab.contracts.events.subagent import SubagentFailed
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.provider import ListsModels, Provider
from trimtab.contracts.run import Mode, Prompt, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import Assignment, Tool, ToolResult
from trimtab.customize.model_families import find_at_service, resolve_model_families
from trimtab.customize.subagent_settings import PoolSettings, read_settings
from trimtab.loop.ledger import Ledger
from trimtab.models.choose import Chosen, ModelChooser, RoleModels
from trimtab.models.limits import check_limits
from trimtab.providers.names import same_model
from trimtab.session.inbox import Inbox, TaskInbox
from trimtab.session.projections.agents import AgentRecord

if TYPE_CHECKING:
    from trimtab.runtimes.responder import RuntimeChoice

MAX_IDLE = 32
"""The number of idle agents whose conversations stay in memory; others are read from the log."""
LIST_SECONDS = 3.0
"""The time a service has to list its models before a built-in agent starts without its own."""
MAX_QUOTED = 2000
"""The number of characters of an answer that a notification quotes."""


USER = "user"
"""Stands for a person or a program in place of the id of an agent."""


class PooledAgent(Protocol):
    """A sub-agent in memory: at work, or idle."""

    id: str
    run: Run
    caller: Run
    inbox: TaskInbox
    background: bool
    busy: bool
    result: ToolResult | None
    """The result of its last turn; None while it works."""
    stopped_by: str | None
    """Set when it was stopped: the id of the agent that did it ("" for the main agent) or USER."""

    def begin(self) -> None:
        """Start a turn: answer all prompts that wait."""
        ...

    def cancel(self, stopped_by: str) -> bool:
        """Cancel the turn; return False if it does not work."""
        ...

    def promote(self) -> bool:
        """Let the caller go on without the answer; return False if it does not wait."""
        ...

    async def ended(self) -> None:
        """Wait until it does not work."""
        ...

    def leave(self) -> None:
        """Drop the conversation from memory."""
        ...


class SubagentPool:
    """The sub-agents of a session, and what they share with it.

    `records` has all of them, folded from the log; `agents` those in memory. Options are read anew
    for each sub-agent, since they may change. `find_tools` returns the tools that sub-agents can
    have in a run, whatever the main agent's own tools are.
    """

    def __init__(
        self,
        setup: SessionSetup,
        client: Client,
        models: ModelChooser,
        options: Callable[[], SessionOptions],
        main: Run,
    ) -> None:
        self.setup = setup
        self.client = client
        self.main = main
        self.models = models
        self._options = options
        self.find_tools: Callable[[Run], Mapping[str, Tool]] = lambda _: {}
        self.send_to_main: Callable[[Prompt], object] = lambda _: None
        """Sends the main agent a prompt, which wakes it if it is idle."""
        self.restore: Callable[[AgentRecord], Awaitable[PooledAgent]]
        """Builds an agent that worked before, with the conversation it had."""
        self.overrides: JsonObject = {}
        """A client's `model` and `effortLevel` for agents, by name; they override settings."""
        self._listed: dict[str, Sequence[str]] = {}
        """The models of services, by the service's name."""
        self._told_models: set[str] = set()
        self.agents: dict[str, PooledAgent] = {}
        """The sub-agents in memory, by id; callers come before those they called."""
        self.starting = 0
        """The number of agents that are being built."""
        self._waiting: list[str] = []
        """Idle agents with messages, which begin to work when fewer agents do."""
        self._waking: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._closing = False
        self._opened: list[Chosen] = []
        self._origin = ""
        self._started = 0
        self._messages = 0
        self._roles: RoleModels | None = None

    @property
    def options(self) -> SessionOptions:
        return self._options()

    @property
    def settings(self) -> PoolSettings:
        return read_settings(self.setup.customizations)

    @property
    def records(self) -> Mapping[str, AgentRecord]:
        return self.setup.session.projections.agents.records

    @property
    def working(self) -> list[PooledAgent]:
        """The agents that work now."""
        return [agent for agent in self.agents.values() if agent.busy]

    @property
    def is_quiet(self) -> bool:
        """True if no agent works or is about to."""
        return not (self.starting or self._waking or self._waiting or self.working)

    def admit(self) -> None:
        """Count the start of an agent. Raises `UsageError` if too many were started or work.

        Agents are counted over the work on one prompt of a person, whatever their depth.
        """
        settings = self.settings
        self._count_anew()
        if self._started >= settings.max_agents:
            raise UsageError(
                f"{count(settings.max_agents, 'agent')} were started for this prompt, which is the "
                "limit; do the rest yourself."
            )
        if not self._has_room(settings):
            raise UsageError(
                f"No more than {count(settings.max_concurrency, 'agent')} may run at once; wait "
                "for a result, or do this part yourself."
            )
        self._started += 1

    def _has_room(self, settings: PoolSettings) -> bool:
        at_work = self.starting + len(self._waking) + len(self.working)
        return at_work < settings.max_concurrency

    def _count_anew(self) -> None:
        if self.main.origin.id != self._origin:
            self._origin, self._started, self._messages = self.main.origin.id, 0, 0

    def find(self, name: str) -> AgentDefinition:
        """Return an agent by name. Raises `UsageError` if it is unknown."""
        disabled = self.settings.disabled_subagents
        custom = self.setup.customizations
        agents = custom.callable_agents if custom else {}
        if name in agents and name not in disabled:
            return agents[name]
        names = [known for known in agents if known not in disabled]
        advice = f"use one of {', '.join(names)}" if names else "none is available; do it yourself"
        raise UsageError(f"Unknown agent {name!r}; {advice}.")

    def find_record(self, name: str) -> AgentRecord:
        """Return the agent with an id, or with a name that no other has. Raises `UsageError`."""
        record = self.records.get(name)
        if record is not None:
            return record
        found = [record for record in self.records.values() if name and record.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"Several agents are named {name!r}; use an agent_id instead.")
        raise UsageError(f"No agent has the id {name!r}; call list_agents to see the ids.")

    def run_of(self, agent_id: str) -> Run:
        """Return the run of an agent, or of the main agent if it is not in memory."""
        agent = self.agents.get(agent_id)
        return self.main if agent is None else agent.run

    def send(self, record: AgentRecord, prompt: Prompt) -> None:
        """Send an agent a message: read before its next model call, or in another turn."""
        agent = self.agents.get(record.id)
        inbox = agent.inbox if agent else Inbox(self.setup.session, record.id)
        inbox.put(prompt)
        self._wake(record.id)

    def count_message(self) -> None:
        """Count a message from an agent to another. Raises `UsageError` if there are too many."""
        limit = self.settings.max_messages
        self._count_anew()
        self._messages += 1
        if self._messages > limit:
            raise UsageError(
                f"{count(limit, 'message')} were sent between agents for this prompt, which is "
                "the limit; go on without another one."
            )

    def _wake(self, agent_id: str) -> None:
        agent = self.agents.get(agent_id)
        if self._closing or (agent and agent.busy) or agent_id in self._waking:
            return
        if not self._has_room(self.settings):
            if agent_id not in self._waiting:
                self._waiting.append(agent_id)
            return
        task = asyncio.get_running_loop().create_task(self._resume(agent_id))
        self._waking[agent_id] = task
        task.add_done_callback(lambda _: self._waking.pop(agent_id))

    async def _resume(self, agent_id: str) -> None:
        record = self.records[agent_id]
        try:
            agent = self.agents.get(agent_id) or await self.restore(record)
            agent.background = True
            agent.begin()
            self.changed()
        except TrimtabError as error:
            failed = SubagentFailed(
                tool_call_id=record.call_id,
                agent_name=record.type,
                agent_display_name=record.display_name,
                error=error.message,
            )
            self.setup.session.emit(failed, agent_id=agent_id)
            self._tell_caller(record, None)
            self.changed()

    def on_turn_ended(self, agent: PooledAgent) -> None:
        """Tell the caller of an agent that worked in the background; begin turns that wait."""
        record = self.records.get(agent.id)
        if not agent.background:
            self._drop(agent)
        elif record is not None and not self._closing:
            if agent.stopped_by != record.caller_id:
                self._tell_caller(record, agent.stopped_by)
            self._drop_idle()
        if agent.background:
            self.changed()
        self._changed.set()
        if agent.id in self.agents and not agent.inbox.is_empty and agent.stopped_by is None:
            self._wake(agent.id)
        waiting, self._waiting = self._waiting, []
        for agent_id in waiting:
            self._wake(agent_id)

    def record_bug(self, error: BaseException) -> None:
        """Record an exception of an agent for whom nobody waits."""
        stack = "".join(traceback.format_exception(error))
        message = f"Internal error of an agent ({type(error).__name__}: {error}); please report it."
        self.setup.session.emit(SessionError(error_type="internal", message=message, stack=stack))

    def _tell_caller(self, record: AgentRecord, stopped_by: str | None) -> None:
        """Notify the caller, or the nearest agent above it that still takes messages."""
        prompt = describe_end(record, stopped_by)
        caller = self.records.get(record.caller_id)
        while caller is not None and not (caller.id in self.agents or caller.state == "idle"):
            caller = self.records.get(caller.caller_id)
        if caller is None:
            self.send_to_main(prompt)
        else:
            self.send(caller, prompt)

    def _drop(self, agent: PooledAgent) -> None:
        if self.agents.pop(agent.id, None) is not None:
            agent.leave()

    def _drop_idle(self) -> None:
        idle = [agent for agent in self.agents.values() if not agent.busy]
        for agent in idle[:-MAX_IDLE]:
            self._drop(agent)

    def forget(self) -> None:
        """Drop all idle agents from memory: the log they were folded from has changed."""
        for agent in tuple(self.agents.values()):
            self._drop(agent)

    def changed(self) -> None:
        """Announce that the tasks in the background changed, and wake those who wait for that."""
        self._changed.set()
        self.setup.session.emit(SessionBackgroundTasksChanged())

    def wake_waiters(self) -> None:
        """Let those who wait for a change look again."""
        self._changed.set()

    async def wait_change(self) -> None:
        """Wait until any agent begins or ends to work, or a command in the background does."""
        self._changed.clear()
        await self._changed.wait()

    def descendants(self, agent_id: str) -> list[str]:
        """Return the ids of an agent and of all agents below it."""
        found = [agent_id]
        for record in self.records.values():
            if record.caller_id in found:
                found.append(record.id)
        return found

    def stop(self, agent_id: str, stopped_by: str = USER) -> "asyncio.Task[None] | None":
        """Begin to end an agent, those below it, and their commands; None if nothing of it works.

        Returns the task that waits for their end.
        """
        ids = self.descendants(agent_id)
        self._waiting = [waiting for waiting in self._waiting if waiting not in ids]
        waking = [task for waked, task in self._waking.items() if waked in ids]
        agents = [agent for agent in self.working if agent.id in ids]
        shells = [
            shell.shell_id
            for shell in self.setup.workspace.shells.list()
            if shell.agent_id in ids and shell.exit_code is None
        ]
        if not (waking or agents or shells):
            return None
        for task in waking:
            task.cancel()
        for agent in reversed(agents):
            agent.cancel(stopped_by)

        async def finish() -> None:
            await asyncio.gather(*(agent.ended() for agent in agents))
            stops = (self.setup.workspace.shells.stop(shell) for shell in shells)
            await asyncio.gather(*stops, return_exceptions=True)

        task = asyncio.get_running_loop().create_task(finish())
        self.main.tasks.add(task)
        task.add_done_callback(self.main.tasks.discard)
        return task

    def promote(self, agent_id: str) -> bool:
        """Let the caller of an agent go on without its answer; False if it does not wait."""
        agent = self.agents.get(agent_id)
        if agent is None or not agent.promote():
            return False
        self.setup.session.emit(AgentChanged(change="promoted"), agent_id=agent_id)
        self.changed()
        return True

    def remove(self, agent_id: str) -> bool:
        """Take an agent that does not work off the list; False if it works or is unknown."""
        record, agent = self.records.get(agent_id), self.agents.get(agent_id)
        if (
            record is None
            or record.removed
            or record.state == "running"
            or agent_id in self._waking
        ):
            return False
        if agent is not None:
            self._drop(agent)
        self.setup.session.emit(AgentChanged(change="removed"), agent_id=agent_id)
        self.changed()
        return True

    def setting(self, agent: AgentDefinition, name: str) -> str | None:
        """Return a setting of an agent: the client's value, else the one in the settings."""
        for settings in (self.overrides.get(agent.name), self.settings.agents.get(agent.name)):
            value = settings.get(name) if isinstance(settings, dict) else None
            if isinstance(value, str) and value:
                return value
        return None

    async def find_runtime(self, agent: AgentDefinition) -> "RuntimeChoice | None":
        """Return the runtime that an agent's file names. Raises `TrimtabError`."""
        if not agent.runtime or self.setup.home is None:
            return None
        from trimtab.agents.runtime_agent import choose_runtime

        models = self.options.runtime_models or "own"
        return await choose_runtime(agent.runtime, models, self.setup.home, self.setup.env)

    async def choose(
        self,
        caller: Run,
        agent: AgentDefinition,
        task: Assignment,
        runtime: "RuntimeChoice | None" = None,
    ) -> Chosen:
        """Return the model of the task, else of the settings, the agent's file or the caller."""
        configured = self.setting(agent, "model")
        if runtime is not None and runtime.models == "own":
            from trimtab.agents.runtime_agent import own_models

            named = next(iter(agent.models), None)
            model = task.model or configured or named
            return own_models(runtime.runtime, model, self.options.limits)
        role = None if configured or task.model else await self._by_role()
        if task.model or configured:
            names: tuple[str, ...] = (task.model or configured or "",)
        elif agent.source == "builtin":
            names = () if role or not agent.models else await self._find_builtin(caller, agent)
        else:
            names = await self._models_of(agent)
        candidates = [self._by_name(caller, name) for name in names]
        if not candidates and role is not None:
            candidates.append(role)
        if not candidates or (agent.model_policy != "required" and not task.model):
            candidates.append(own_model(caller))
        for candidate in candidates:
            check_limits(candidate.model, self.options.limits, candidate.price)
        return msgspec.structs.replace(candidates[0], fallbacks=tuple(candidates[1:]))

    async def _models_of(self, agent: AgentDefinition) -> tuple[str, ...]:
        """Return the agent's models; a Claude family name becomes its newest available model."""
        custom = self.setup.customizations
        if custom is None or not agent.models:
            return agent.models
        await resolve_model_families(custom, agent, offline=bool(self.options.offline))
        return custom.models_of(agent)

    async def _find_builtin(self, caller: Run, agent: AgentDefinition) -> tuple[str, ...]:
        """Return the model of a built-in agent, as far as the caller's own service has one.

        Code never goes to a service that the person did not choose for the session.
        """
        model = caller.agent.model
        listed = await self._list_models(model.provider)
        found = find_at_service(agent.models[0], model.name, listed)
        if found is not None and same_model(agent.models[0], found):
            return (found,)
        if (key := f"{agent.name} {model.name}") not in self._told_models:
            self._told_models.add(key)
            message = (
                f"The agent {agent.name} asks for {agent.models[0]}, which this service does not "
                f"have; it uses {found or model.name}."
            )
            self.setup.session.emit(SessionInfo(info_type="agent_model", message=message))
        return () if found is None else (found,)

    async def _list_models(self, provider: Provider) -> Sequence[str]:
        """Return the models of a service, asked for once; none if it does not say."""
        if provider.name not in self._listed:
            names: Sequence[str] | None = None
            if isinstance(provider, ListsModels):
                try:
                    async with asyncio.timeout(LIST_SECONDS):
                        names = await provider.list_models()
                except (ModelError, TimeoutError):
                    names = None
            self._listed[provider.name] = names or ()
        return self._listed[provider.name]

    def _by_name(self, caller: Run, name: str) -> Chosen:
        chosen = self.models.find(name, self.options)
        if chosen is not None:
            self._opened.append(chosen)
            return chosen
        price, limit = self.models.describe(name)
        return Chosen(
            provider=caller.agent.model.provider, model=name, price=price, prompt_limit=limit
        )

    async def _by_role(self) -> Chosen | None:
        if self._roles is None:
            self._roles = RoleModels(self.models, self.options)
        return await self._roles.get("subagent")

    def set_mode(self, mode: Mode) -> None:
        """Switch the sub-agents in memory to plan mode, or out of it."""
        inner: Mode = "plan" if mode == "plan" else "interactive"
        for subagent in self.agents.values():
            subagent.run.agent = msgspec.structs.replace(subagent.run.agent, mode=inner)

    def share_budget(self) -> None:
        """Limit every sub-agent in memory to a share of its caller's current budget."""
        for agent_id, subagent in self.agents.items():
            budget = subagent.caller.agent.budget
            if isinstance(budget, Ledger):
                agent = agent_of(subagent.run)
                subagent.run.agent = agent.with_budget(budget.slice(agent_id))

    async def stop_all(self) -> int:
        """End all agents for good and wait for that; return how many worked."""
        self._closing = True
        agents = self.working
        self._waiting.clear()
        for task in self._waking.values():
            task.cancel()
        for agent in reversed(agents):
            agent.cancel(USER)
        await asyncio.gather(*(agent.ended() for agent in agents))
        return len(agents)

    async def aclose(self) -> None:
        """End all agents, and close the model services opened for them."""
        await self.stop_all()
        for chosen in self._opened:
            await chosen.aclose()
        if self._roles is not None:
            await self._roles.aclose()


def own_model(caller: Run) -> Chosen:
    """Return the model of the caller itself."""
    model = caller.agent.model
    return Chosen(
        provider=model.provider,
        model=model.name,
        price=model.price,
        prompt_limit=model.prompt_limit,
    )


def describe_end(record: AgentRecord, stopped_by: str | None) -> Prompt:
    """Return the notification that an agent has ended its turn, and what it answered."""
    label = f"{record.name} ({record.type})" if record.name else record.type
    if stopped_by is not None:
        outcome = f"was stopped by {'the user' if stopped_by == USER else 'another agent'}"
    elif record.state == "failed":
        outcome = f"did not finish: {record.error}"
    else:
        outcome = "has completed its work"
    lines = [f"The agent {label} with the agent_id {record.id} {outcome}."]
    if answer := record.answers[-1] if record.answers else "":
        lines.append(f"Its last message was:\n{answer[:MAX_QUOTED]}")
        if len(answer) > MAX_QUOTED:
            lines.append("The rest of the message can be read with read_agent.")
    text = "\n".join(lines)
    kind: JsonObject = {
        "type": "agent_completed",
        "agentId": record.id,
        "agentType": record.type,
        "status": "completed" if stopped_by is None and record.state != "failed" else "failed",
        "description": record.description,
        "prompt": record.prompt,
    }
    return Prompt(
        text=f"<system_notification>\n{text}\n</system_notification>",
        mode="immediate",
        source="notification",
        billable=False,
        notification=kind,
    )
