"""Which agents may work for another one, how many at once, and with which model."""

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
from trimtab.customize.subagent_settings import PoolSettings, read_settings
from trimtab.loop.ledger import Ledger
from trimtab.models.choose import Chosen, ModelChooser, RoleModels


class Worker(Protocol):
    """A sub-agent, as those see it who do not build it."""

    about: JsonObject
    run: Run | None
    caller: Run

    def end(self) -> bool:
        """Stop it; False if it has not begun, or is over."""
        ...


class SubagentPool:
    """What the sub-agents of a session have from it. What may change is asked for each time.

    `pool` gives the tools an agent could have in a run, whatever the main agent has.
    """

    def __init__(
        self,
        setup: SessionSetup,
        client: Client,
        models: ModelChooser,
        options: Callable[[], SessionOptions],
        pool: Callable[[Run], Mapping[str, Tool]],
    ) -> None:
        self.setup = setup
        self.client = client
        self.pool = pool
        self._models = models
        self._options = options
        self.overrides: JsonObject = {}
        """What a client wants of agents, by name: model, effortLevel."""
        self.agents: dict[str, Worker] = {}
        """The sub-agents there are now, at any depth, by id."""
        self._opened: list[Chosen] = []
        self._roles: RoleModels | None = None

    @property
    def options(self) -> SessionOptions:
        return self._options()

    @property
    def settings(self) -> PoolSettings:
        return read_settings(self.setup.customizations)

    def find(self, name: str) -> AgentDefinition:
        """The agent of a name. Raises `UsageError` where there is none, or no room for it."""
        settings = self.settings
        if len(self.agents) > settings.max_concurrency:
            raise UsageError(
                f"No more than {count(settings.max_concurrency, 'agent')} may work at once; wait "
                "for an answer, or do this part yourself."
            )
        custom = self.setup.customizations
        agents = custom.callable_agents if custom else {}
        if name in agents and name not in settings.disabled_subagents:
            return agents[name]
        names = ", ".join(one for one in agents if one not in settings.disabled_subagents)
        raise UsageError(f"There is no agent {name!r}; use one of {names or 'none'}.")

    def setting(self, agent: AgentDefinition, name: str) -> str | None:
        """What a client wants of an agent, else what settings say."""
        for wanted in (self.overrides.get(agent.name), self.settings.agents.get(agent.name)):
            if isinstance(wanted, dict) and isinstance(value := wanted.get(name), str) and value:
                return value
        return None

    async def choose(self, caller: Run, agent: AgentDefinition, task: Assignment) -> Chosen:
        """The model the task names, else settings, else the agent's own, else the caller's."""
        set_one = self.setting(agent, "model")
        names = (set_one,) if set_one else await self._models_of(agent)
        if task.model:
            names = (task.model,)
        found = [self._by_name(caller, name) for name in names]
        if not found and (role := await self._by_role()) is not None:
            found.append(role)
        if not found or (agent.model_policy != "required" and not task.model):
            found.append(own_model(caller))
        for one in found:
            check_limits(one.model, self.options.limits, one.price)
        return msgspec.structs.replace(found[0], fallbacks=tuple(found[1:]))

    async def _models_of(self, agent: AgentDefinition) -> tuple[str, ...]:
        """The agent's models; for a family of Claude's the newest that can be reached."""
        custom = self.setup.customizations
        if custom is None or not agent.models:
            return agent.models
        from trimtab.customize.model_families import resolve_model_families

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
        """Put the sub-agents at work into plan mode with their caller, or out of it."""
        for worker in self.agents.values():
            if worker.run is not None:
                inner: Mode = "plan" if mode == "plan" else "interactive"
                worker.run.agent = msgspec.structs.replace(worker.run.agent, mode=inner)

    def share_budget(self) -> None:
        """Give every sub-agent its share of what its caller may spend now."""
        for agent_id, worker in self.agents.items():  # callers come before those they called
            budget = worker.caller.agent.budget
            if worker.run is not None and isinstance(budget, Ledger):
                agent = agent_of(worker.run)
                worker.run.agent = agent.with_budget(budget.slice(agent_id))

    async def aclose(self) -> None:
        """Close the services that sub-agents used."""
        for chosen in self._opened:
            await chosen.aclose()
        if self._roles is not None:
            await self._roles.aclose()


def own_model(caller: Run) -> Chosen:
    """The model of whoever asks."""
    model = caller.agent.model
    return Chosen(
        provider=model.provider,
        model=model.name,
        price=model.price,
        prompt_limit=model.prompt_limit,
    )
