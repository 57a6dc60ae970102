"""The sub-agents of a session: which agents may be started, how many at once, on which model."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from trimtab.agents.agent import agent_of
from trimtab.agents.limits import check_limits
from trimtab.agents.setup import SessionSetup
from trimtab.contracts.customization import AgentDefinition
from trimtab.contracts.errors import UsageError
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.options import Client, SessionOptions
from trimtab.contracts.run import Mode, Run
from trimtab.contracts.text import count
from trimtab.contracts.tool import Assignment, Tool
from trimtab.customize.model_families import resolve_model_families
from trimtab.customize.subagent_settings import PoolSettings, read_settings
from trimtab.loop.ledger import Ledger
from trimtab.models.choose import Chosen, ModelChooser, RoleModels


class RunningSubagent(Protocol):
    """A sub-agent of the pool."""

    description: JsonObject
    """The task as the protocol describes it."""
    run: Run | None
    caller: Run

    def cancel(self) -> bool:
        """Cancel the sub-agent; return False if it is not running."""
        ...


class SubagentPool:
    """The running sub-agents of a session, and what they share with it.

    Options are read anew for each sub-agent, since they may change. `find_tools` returns the tools
    that sub-agents can have in a run, whatever the main agent's own tools are.
    """

    def __init__(
        self,
        setup: SessionSetup,
        client: Client,
        models: ModelChooser,
        options: Callable[[], SessionOptions],
        find_tools: Callable[[Run], Mapping[str, Tool]],
    ) -> None:
        self.setup = setup
        self.client = client
        self.find_tools = find_tools
        self._models = models
        self._options = options
        self.overrides: JsonObject = {}
        """A client's `model` and `effortLevel` for agents, by name; they override settings."""
        self.agents: dict[str, RunningSubagent] = {}
        """The running sub-agents of any depth, by id; callers come before those they called."""
        self._opened: list[Chosen] = []
        self._interaction = ""
        self._started = 0
        self._roles: RoleModels | None = None

    @property
    def options(self) -> SessionOptions:
        return self._options()

    @property
    def settings(self) -> PoolSettings:
        return read_settings(self.setup.customizations)

    def find(self, name: str, main: Run) -> AgentDefinition:
        """Return an agent by name. Raises `UsageError` if it is unknown or too many were started.

        Agents are counted over the work on one prompt of the main agent, whatever their depth.
        """
        settings = self.settings
        if main.interaction_id != self._interaction:
            self._interaction, self._started = main.interaction_id, 0
        self._started += 1
        if self._started > settings.max_agents:
            raise UsageError(
                f"{count(settings.max_agents, 'agent')} were started for this prompt, which is the "
                "limit; do the rest yourself."
            )
        if len(self.agents) > settings.max_concurrency:
            raise UsageError(
                f"No more than {count(settings.max_concurrency, 'agent')} may run at once; wait "
                "for a result, or do this part yourself."
            )
        custom = self.setup.customizations
        agents = custom.callable_agents if custom else {}
        if name in agents and name not in settings.disabled_subagents:
            return agents[name]
        names = [known for known in agents if known not in settings.disabled_subagents]
        advice = f"use one of {', '.join(names)}" if names else "none is available; do it yourself"
        raise UsageError(f"Unknown agent {name!r}; {advice}.")

    def setting(self, agent: AgentDefinition, name: str) -> str | None:
        """Return a setting of an agent: the client's value, else the one in the settings."""
        for settings in (self.overrides.get(agent.name), self.settings.agents.get(agent.name)):
            value = settings.get(name) if isinstance(settings, dict) else None
            if isinstance(value, str) and value:
                return value
        return None

    async def choose(self, caller: Run, agent: AgentDefinition, task: Assignment) -> Chosen:
        """Return the model of the task, else of the settings, the agent's file or the caller."""
        configured = self.setting(agent, "model")
        names = (configured,) if configured else await self._models_of(agent)
        if task.model:
            names = (task.model,)
        candidates = [self._by_name(caller, name) for name in names]
        if not candidates and (role := await self._by_role()) is not None:
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

    def _by_name(self, caller: Run, name: str) -> Chosen:
        chosen = self._models.find(name, self.options)
        if chosen is not None:
            self._opened.append(chosen)
            return chosen
        price, limit = self._models.describe(name)
        return Chosen(
            provider=caller.agent.model.provider, model=name, price=price, prompt_limit=limit
        )

    async def _by_role(self) -> Chosen | None:
        if self._roles is None:
            self._roles = RoleModels(self._models, self.options)
        return await self._roles.get("subagent")

    def set_mode(self, mode: Mode) -> None:
        """Switch the running sub-agents to plan mode, or out of it."""
        for subagent in self.agents.values():
            if subagent.run is not None:
                inner: Mode = "plan" if mode == "plan" else "interactive"
                subagent.run.agent = msgspec.structs.replace(subagent.run.agent, mode=inner)

    def share_budget(self) -> None:
        """Limit every running sub-agent to a share of its caller's current budget."""
        for agent_id, subagent in self.agents.items():
            budget = subagent.caller.agent.budget
            if subagent.run is not None and isinstance(budget, Ledger):
                agent = agent_of(subagent.run)
                subagent.run.agent = agent.with_budget(budget.slice(agent_id))

    async def aclose(self) -> None:
        """Close the model services opened for sub-agents."""
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
