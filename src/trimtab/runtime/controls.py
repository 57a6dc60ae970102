"""What can be changed about a session while it lives: mode, model, tools, permissions."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.agents.agent import SessionAgent, agent_of
from trimtab.agents.build import build_permissions, build_turn_limit
from trimtab.agents.limits import build_ledger, check_limits
from trimtab.agents.setup import SessionSetup
from trimtab.agents.system_prompt import PromptCase, SystemPrompt, build_prompt
from trimtab.agents.toolset import ToolConditions, choose_tools
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.events.context import SessionLimitsChanged
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import (
    SessionModeChanged,
    SessionModelChange,
    SessionPermissionsChanged,
    SessionWarning,
)
from trimtab.contracts.events.setup import (
    SessionMcpServersLoaded,
    SessionSkillsLoaded,
    SessionToolsUpdated,
)
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.options import (
    Client,
    LimitOptions,
    PermissionOptions,
    SessionOptions,
)
from trimtab.contracts.provider import ListsModels, Price, Provider
from trimtab.contracts.run import Mode, Run
from trimtab.contracts.tool import Assignment, Tool, ToolResult
from trimtab.customize.describe import describe_loaded
from trimtab.customize.python_tools import PythonTools
from trimtab.customize.watcher import CustomizationWatcher
from trimtab.mcp.session_servers import SessionServers
from trimtab.models.choose import Chosen, ModelChooser
from trimtab.providers.windows import DEFAULT
from trimtab.runtime.options import OptionOwner

if TYPE_CHECKING:
    from trimtab.agents.pool import SubagentPool


class Controls:
    """The settings of one session, and how they reach its run.

    A change takes effect with the next model call; what it changes about the system message or
    the tools is announced before the next prompt.
    """

    def __init__(
        self,
        setup: SessionSetup,
        run: Run,
        owner: OptionOwner,
        client: Client,
        models: ModelChooser,
    ) -> None:
        self.setup = setup
        self._owner = owner
        self._run = run
        self._client = client
        self._models = models
        self._opened: list[Chosen] = []
        self._external: Sequence[Tool] = ()
        self._offered: Collection[str] = ()
        self._told_model = False
        self._model_without_agent: str | None = None
        self._told_tools: set[str] = set()
        self._stale = True
        self.prompt = SystemPrompt("", {})
        self._stock = CustomizationWatcher(setup.session, setup.customizations)
        self._python = PythonTools(setup)
        self.servers = SessionServers(setup, setup.hooks, self._use_servers, lambda: self.options)
        self._crew: SubagentPool | None = None
        self.subagents: JsonObject = {}

    @property
    def options(self) -> SessionOptions:
        """The options of the session as they are resolved now."""
        return self._owner.current

    @property
    def option_sources(self) -> Mapping[str, str]:
        """What chose each option: a flag, a variable, an agent, a setting or the default."""
        return self._owner.sources

    @property
    def agent(self) -> SessionAgent:
        """The main agent as it is now."""
        return agent_of(self._run)

    @property
    def tools(self) -> Collection[Tool]:
        return self._run.agent.tools.values()

    @property
    def effort(self) -> str | None:
        return self._run.agent.model.effort

    def set_mode(self, mode: Mode) -> None:
        previous = self._run.agent.mode
        if mode == previous:
            return
        self._run.agent = msgspec.structs.replace(self.agent, mode=mode)
        if self._crew is not None:
            self._crew.set_mode(mode)
        self.setup.session.emit(SessionModeChanged(previous_mode=previous, new_mode=mode))
        self._choose_tools()

    def set_model(
        self,
        model: str,
        *,
        effort: str | None = None,
        provider: Provider | None = None,
        cause: str | None = None,
    ) -> None:
        described = self._models.describe(model)
        self._use_model(model, described, effort=effort, provider=provider, cause=cause)

    def _use_model(
        self,
        model: str,
        described: tuple[Price | None, int | None],
        *,
        effort: str | None,
        provider: Provider | None,
        cause: str | None = None,
    ) -> None:
        before = self.agent.model
        price, prompt_limit = described
        check_limits(model, self.options.limits, price)
        self._run.agent = self.agent.with_model(
            provider=provider or before.provider,
            name=model,
            effort=effort or before.effort,
            price=price,
            prompt_limit=prompt_limit,
        )
        self._told_model = True
        self._choose_tools()
        self.setup.session.emit(
            SessionModelChange(
                previous_model=before.name,
                new_model=model,
                previous_reasoning_effort=before.effort,
                reasoning_effort=self.agent.model.effort,
                cause=cause,
            )
        )

    async def switch_model(self, model: str, *, effort: str | None = None) -> str:
        """Go on with a model by any name there is, through its own service if the name tells one.

        Returns the name by which the service knows it.
        """
        chosen = self._models.find(model, self.options)
        if chosen is None:
            self.set_model(model, effort=effort)
            return model
        self._opened.append(chosen)
        described = chosen.price, chosen.prompt_limit
        self._use_model(chosen.model, described, effort=effort, provider=chosen.provider)
        return chosen.model

    async def check_model(self, model: str) -> bool:
        """Return whether a service has a model; False if it does not list its models.

        Raises `UsageError` if it lists them and this one is not among them.
        """
        from trimtab.providers.names import did_you_mean, same_model

        if self._models.is_declared(model):
            return True
        chosen = self._models.find(model, self.options)
        provider = chosen.provider if chosen else self._run.agent.model.provider
        listed = None
        try:
            if isinstance(provider, ListsModels):
                listed = await provider.list_models()
        except ModelError:
            pass  # the next call will say what is wrong with the service
        finally:
            if chosen is not None:
                await chosen.aclose()
        if listed is not None and not any(same_model(model, name) for name in listed):
            advice = did_you_mean(model, listed)
            raise UsageError(
                f"There is no model {model!r}; {advice}{'' if advice.endswith('?') else '.'} Start "
                f"with --model {model} to use it unchecked."
            )
        return listed is not None

    async def aclose(self) -> None:
        """End the MCP servers, and close the services that were switched to."""
        await self.servers.aclose()
        for chosen in self._opened:
            await chosen.aclose()
        if self._crew is not None:
            await self._crew.aclose()

    def set_limits(self, limits: LimitOptions) -> None:
        """Other limits from now on; what was spent before counts."""
        check_limits(self.agent.model.name, limits, self.agent.model.price)
        self._owner.change(limits=limits)
        turn_limit = build_turn_limit(limits.max_turns, self._run.total_turns)
        agent = self.agent.with_parts(turn_limit=turn_limit)
        if agent.parts.autopilot is not None:
            agent.parts.autopilot.max_continues = limits.continues
        self._run.agent = agent.with_budget(build_ledger(self.setup.session, limits))
        if self._crew is not None:
            self._crew.share_budget()
        told = {"maxTokens": limits.max_tokens, "maxUsd": limits.max_usd}
        self.setup.session.emit(SessionLimitsChanged(session_limits=told))

    def set_effort(self, effort: str | None) -> None:
        self._run.agent = self.agent.with_model(effort=effort)

    def set_vision(self, vision: bool) -> None:
        """Whether the model is shown images from now on."""
        self._run.agent = self.agent.with_model(vision=vision)

    def set_streaming(self, stream: bool) -> None:
        self._run.agent = self.agent.with_model(stream=stream)

    def set_tools(self, external: Sequence[Tool], offered: Collection[str]) -> None:
        """The tools of clients, and the built-in ones that need a client and have one."""
        self._external, self._offered = external, offered
        if any(getattr(tool, "is_terminal", False) for tool in external):
            from trimtab.loop.processors.terminal import TerminalTools

            self._run.agent = self.agent.with_parts(terminal_tools=TerminalTools())
        self._choose_tools()

    def change_options(self, **changes: Any) -> None:
        """Choose other values for fields of `SessionOptions` that have no method of their own."""
        self._owner.change(**changes)
        self._choose_tools()

    def add_servers(self, servers: Mapping[str, object]) -> None:
        """Use more MCP servers of a client."""
        customize = self._owner.given.customize
        servers = {**customize.servers, **servers}
        self.change_options(customize=msgspec.structs.replace(customize, servers=servers))

    def set_agent(self, name: str | None) -> None:
        """Work as a custom agent from the next prompt on: its prompt, tools and model; or as none.

        Without an agent the model is again the one that was used before one was chosen.
        """
        custom = self.setup.customizations
        if custom is None:
            return
        usual = self._model_without_agent or self._run.agent.model.name
        customize = msgspec.structs.replace(self._owner.given.customize, agent=name)
        changes: dict[str, Any] = {"customize": customize}
        if name is not None and custom.models_of(custom.find_agent(name)):
            changes["model"] = None  # choosing an agent chooses its model
        wanted = self._owner.change(**changes)
        model = wanted.model if name is not None and wanted.model else usual
        self._model_without_agent = None if name is None else usual
        if model != self._run.agent.model.name:
            self.set_model(model, effort=wanted.effort)
        self._choose_tools()

    def switch_skill(self, name: str, *, enabled: bool) -> None:
        """Switch a skill on or off in this session only."""
        custom = self.setup.customizations
        if custom is None or name not in custom.skills.skills:
            raise UsageError(f"There is no skill {name!r}; see session.skills.list.")
        custom.switched_skills[name] = enabled
        self.reload()

    def reload(self) -> None:
        """Read again what is on disk, whether or not it seems to have changed."""
        custom = self.setup.customizations
        if custom is not None:
            custom.reload()
            self._stock.renew()
            self._choose_tools()

    def set_permissions(self, permissions: PermissionOptions) -> None:
        """Other rules from now on. What was approved for the session is forgotten."""
        before, after = self.options.permissions, permissions
        self._owner.change(permissions=permissions)
        policy = build_permissions(self.setup, self.options, self._client).policy
        self.agent.parts.permissions.adopt(policy)
        if added := [path for path in after.add_dirs if path not in before.add_dirs]:
            around = self.setup.checkout.widen(added)
            self.setup = msgspec.structs.replace(self.setup, checkout=around)
            self.agent.parts.recorder.track(added)
        if before.allow_all_tools != after.allow_all_tools:
            names = {True: "allow-all", False: "manual"}
            self.setup.session.emit(
                SessionPermissionsChanged(
                    previous_mode=names[before.allow_all_tools], mode=names[after.allow_all_tools]
                )
            )

    def refresh(self) -> None:
        """Announce everything again before the next prompt."""
        self._stale = True

    def describe_agents(self) -> list[JsonObject]:
        """The sub-agents at work now, as clients know tasks."""
        agents = self._crew.agents.values() if self._crew else ()
        return [agent.about for agent in agents]

    def cancel_agent(self, agent_id: str) -> bool:
        """End a sub-agent; the one that asked is told so."""
        agent = self._crew.agents.get(agent_id) if self._crew else None
        return agent is not None and agent.end()

    def set_subagents(self, settings: JsonObject | None) -> None:
        """Models and efforts of sub-agents by name, before what settings say."""
        self.subagents = settings or {}

    async def delegate(self, caller: Run, call_id: str, task: Assignment) -> ToolResult:
        """Have a sub-agent do a task on behalf of a tool call."""
        from trimtab.agents.pool import SubagentPool
        from trimtab.agents.subagent import Subagent

        if self._crew is None:
            self._crew = SubagentPool(
                self.setup, self._client, self._models, lambda: self.options, self._pool
            )
        self._crew.wanted = self.subagents
        return await Subagent(self._crew, self._run, caller, call_id).perform(task)

    def _situation(self, run: Run) -> ToolConditions:
        return msgspec.structs.replace(
            self.setup.situation(run.agent.mode, run.agent.model.name),
            external=(*self._python.tools, *self._external),
            served=self.servers.tools,
            offered=self._offered,
        )

    def _pool(self, run: Run) -> dict[str, Tool]:
        """The tools a sub-agent may choose from: those of the main agent do not limit it."""
        custom, options = self.setup.customizations, self.options
        if custom is not None and custom.agent is not None:
            options = msgspec.structs.replace(options, available_tools=custom.available_tools)
        options = msgspec.structs.replace(options, main_excluded=())
        return choose_tools(options, self._client, self._situation(run))

    def _choose_tools(self) -> None:
        tools = choose_tools(self.options, self._client, self._situation(self._run))
        self._run.agent = self.agent.with_tools(tools)
        self._stale = True

    def _use_servers(self) -> None:
        """Tools of MCP servers came or went: the next request has what there is now."""
        told = not self._stale
        self._choose_tools()
        if told:
            self.setup.session.emit(SessionToolsUpdated(model=self._run.agent.model.name))

    def _tell_changed_tools(self) -> None:
        """Tell a model that a tool it may have used is gone, and which ones servers brought."""
        before, now = self._told_tools, set(self._run.agent.tools)
        self._told_tools = now
        gone = before - now
        came = {tool.spec.name for tool in self.servers.tools} & (now - before) if before else ()
        said = []
        if gone:
            names = ", ".join(sorted(gone))
            said.append(f"These tools are not available any more; do not call them: {names}.")
        if came:
            said.append(f"These tools are available from now on: {', '.join(sorted(came))}.")
        if said:
            text = "\n".join(said)
            self._run.notices.append(f"<tools_changed_notice>\n{text}\n</tools_changed_notice>")

    async def _build_prompt(self) -> SystemPrompt:
        case = PromptCase.of(self._run, self.setup.checkout, self.setup.customizations)
        prompt = await build_prompt(case, self.options, self._client.transform)
        if prompt.left_out and prompt.left_out != self.prompt.left_out:
            message = (
                f"The window of {case.model} is too small for all ({case.limit or DEFAULT:,} "
                f"tokens), so the system prompt leaves out {', '.join(prompt.left_out)}; see "
                "`trimtab prompt show`."
            )
            warning = SessionWarning(warning_type="prompt_shortened", message=message)
            self.setup.session.emit(warning)
        return prompt

    async def announce(self) -> None:
        """Before a prompt: tell what the session has, and set the system message, if it changed."""
        if self._stock.has_changed():
            self.reload()
        if await self._python.refresh():
            self._choose_tools()
        await self.servers.refresh()
        if not self._stale:
            return
        self._stale = False
        session, run = self.setup.session, self._run
        if not self._told_model and self._client.judges:
            self._told_model = True
            session.emit(SessionModelChange(new_model=run.agent.model.name, cause="initial"))
        if self.setup.customizations is None:
            session.emit(SessionMcpServersLoaded(servers=[]))
            session.emit(SessionSkillsLoaded(skills=[]))
        else:
            for told in describe_loaded(self.setup.customizations, self.servers.describe()):
                session.emit(told)
        self._tell_changed_tools()
        self.prompt = await self._build_prompt()
        if self.prompt.text != session.conversation.system:
            session.emit(SystemMessage(role="system", content=self.prompt.text))
        session.emit(SessionToolsUpdated(model=run.agent.model.name))
