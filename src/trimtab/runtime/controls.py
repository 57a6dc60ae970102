"""Changes a live session: its mode, model, tools, limits, permissions and customizations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.agents.agent import SessionAgent, agent_of
from trimtab.agents.build import build_permissions, build_turn_limit
from trimtab.agents.denied_tools import check_denied_tools
from trimtab.agents.setup import SessionSetup
from trimtab.agents.system_prompt import PromptCase, SystemPrompt, build_prompt
from trimtab.agents.toolset import ToolConditions, choose_tools
from trimtab.contracts.errors import ModelError, UsageError
from trimtab.contracts.events.context import SessionLimitsChanged
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import (
    SessionContextChanged,
    SessionModeChanged,
    SessionModelChange,
    SessionPermissionsChanged,
    SessionWarning,
)
from trimtab.contracts.events.setup import (
    SessionBackgroundTasksChanged,
    SessionMcpServersLoaded,
    SessionSkillsLoaded,
    SessionToolsUpdated,
)
from trimtab.contracts.events.system import SystemMessage
from trimtab.contracts.options import (
    Client,
    CustomizationOptions,
    LimitOptions,
    PermissionOptions,
    SessionOptions,
)
from trimtab.contracts.provider import CREDIT_USD, ListsModels, Price, Provider
from trimtab.contracts.run import Mode, Prompt, Run
from trimtab.contracts.tool import AgentsPort, Tool
from trimtab.customize.describe import describe_loaded
from trimtab.customize.python_tools import PythonTools
from trimtab.customize.watcher import CustomizationWatcher
from trimtab.mcp.session_servers import SessionServers
from trimtab.models.choose import Chosen, ModelChooser, RoleModels
from trimtab.models.limits import change_ledger, check_limits
from trimtab.policy.rule_files import load_rules
from trimtab.providers.names import did_you_mean, same_model
from trimtab.providers.windows import DEFAULT, window_of
from trimtab.runtime.folder_setup import FolderSetup, find_directory
from trimtab.runtime.options import OptionOwner

if TYPE_CHECKING:
    from trimtab.agents.pool import SubagentPool
    from trimtab.contracts.workspace import EditorBuffers, EditorTerminals
    from trimtab.mcp.sampling import SamplingRequests


class Controls:
    """Applies changes of settings to the run of one session.

    A change takes effect with the next model call; changes of the system message and the tools
    are announced before the next prompt.
    """

    def __init__(
        self,
        setup: SessionSetup,
        run: Run,
        owner: OptionOwner,
        client: Client,
        models: ModelChooser,
        folders: FolderSetup,
    ) -> None:
        self.setup = setup
        self._owner = owner
        self._run = run
        self._client = client
        self._models = models
        self._folders = folders
        self._opened: list[Chosen] = []
        self._client_tools: Sequence[Tool] = ()
        self._offered: Collection[str] = ()
        self._efforts: dict[str, str | None] = {}
        """The effort that was chosen for each model."""
        self._model_announced = False
        self._model_without_agent: str | None = None
        self._announced_tools: set[str] = set()
        self._stale = True
        self.prompt = SystemPrompt("", {})
        self._watcher = CustomizationWatcher(setup.session, setup.customizations)
        self._python_tools = PythonTools(setup)
        self.servers = SessionServers(
            setup, setup.hooks, self._on_servers_changed, lambda: self.options, client
        )
        self.servers.answer_sampling = self._answer_sampling
        self.servers.on_resource_update = self._on_resource_update
        self._sampling: SamplingRequests | None = None
        self._pool: SubagentPool | None = None
        self.send: Callable[[Prompt], object] = lambda _: None
        """Sends the main agent a prompt; set by the live session."""

    @property
    def sampling(self) -> "SamplingRequests":
        """Answers the model calls that MCP servers ask for."""
        if self._sampling is None:
            from trimtab.mcp.sampling import SamplingRequests

            self._sampling = SamplingRequests(
                self._run, lambda: self.agent.parts.permissions, self._client.ask_sampling
            )
        return self._sampling

    async def _answer_sampling(
        self, server: str, params: JsonObject, number: str | int
    ) -> JsonObject:
        return await self.sampling.answer(server, params, number)

    @property
    def options(self) -> SessionOptions:
        """The session's current options, resolved."""
        return self._owner.current

    @property
    def attended(self) -> bool:
        """True if a person follows what the agent does."""
        return self._client.attended

    @property
    def option_sources(self) -> Mapping[str, str]:
        """The source of each option: a flag, a variable, an agent, a setting or the default."""
        return self._owner.sources

    @property
    def agent(self) -> SessionAgent:
        """The current main agent."""
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
        if mode == "autopilot" and self.setup.customizations is not None:
            self.setup.customizations.require_feature("AUTOPILOT_MODE", "Autopilot")
        self._run.agent = msgspec.structs.replace(self.agent, mode=mode)
        if self._pool is not None:
            self._pool.set_mode(mode)
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

    def learn_windows(self, listed: Mapping[str, int]) -> None:
        """Use the context windows that services list, except where one is configured."""
        self._models.listed_windows.update(listed)
        model = self.agent.model
        if model.name in listed and model.prompt_limit == window_of(model.name):
            self._run.agent = self.agent.with_model(prompt_limit=listed[model.name])

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
            effort=effort or self._efforts.get(model, before.effort),
            price=price,
            prompt_limit=prompt_limit,
        )
        self._model_announced = True
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
        """Switch to a model, also to another service if the name selects one.

        Returns the name by which the service knows the model.
        """
        chosen = self._models.find(model, self.options)
        if chosen is None:
            self.set_model(model, effort=effort)
            return model
        self._opened.append(chosen)
        described = chosen.price, chosen.prompt_limit
        self._use_model(chosen.model, described, effort=effort, provider=chosen.provider)
        return chosen.model

    async def find_role_model(self, role: str) -> Chosen | None:
        """Return the model configured for a role, connected; None if there is none."""
        roles = RoleModels(self._models, self.options)
        chosen = await roles.get(role) if roles.has(role) else None
        if chosen is not None:
            self._opened.append(chosen)
        return chosen

    def use(self, chosen: Chosen) -> None:
        """Use a model of another service from the next call on; close the service at the end."""
        self._opened.append(chosen)
        described = chosen.price, chosen.prompt_limit
        self._use_model(chosen.model, described, effort=None, provider=chosen.provider)

    async def check_model(self, model: str) -> bool:
        """Return True if the service lists the model, False if it does not list its models.

        Raises `UsageError` if it lists its models without this one.
        """
        if self._models.is_declared(model):
            return True
        chosen = self._models.find(model, self.options)
        provider = chosen.provider if chosen else self._run.agent.model.provider
        listed = None
        try:
            if isinstance(provider, ListsModels):
                listed = await provider.list_models()
        except ModelError:
            pass  # the next model call reports what is wrong with the service
        finally:
            if chosen is not None:
                await chosen.aclose()
        if listed is not None and not any(same_model(model, name) for name in listed):
            advice = did_you_mean(model, listed)
            raise UsageError(
                f"Unknown model {model!r}; {advice}{'' if advice.endswith('?') else '.'} Start "
                f"with --model {model} to use it unchecked."
            )
        return listed is not None

    async def aclose(self) -> None:
        """Stop the sub-agents and MCP servers, and close the services that were switched to."""
        if self._pool is not None:
            await self._pool.aclose()
        await self.servers.aclose()
        for chosen in self._opened:
            await chosen.aclose()

    def set_limits(self, limits: LimitOptions) -> None:
        """Replace the limits; tokens and money spent before count towards the new ones."""
        check_limits(self.agent.model.name, limits, self.agent.model.price)
        self._owner.change(limits=limits)
        turn_limit = build_turn_limit(limits.max_turns, self._run.total_turns)
        agent = self.agent.with_parts(turn_limit=turn_limit)
        if agent.parts.autopilot is not None:
            agent.parts.autopilot.max_continues = limits.continues
        ask = self._client.ask_limit
        ledger = change_ledger(agent.budget, self.setup.session, limits, ask)
        self._run.agent = agent.with_budget(ledger)
        if self._pool is not None:
            self._pool.share_budget()
        session_limits = {"maxTokens": limits.max_tokens, "maxUsd": limits.max_usd}
        if limits.in_credits and limits.max_usd is not None:
            session_limits["maxAiCredits"] = limits.max_usd / CREDIT_USD
        self.setup.session.emit(SessionLimitsChanged(session_limits=session_limits))

    def set_effort(self, effort: str | None) -> None:
        """Set the reasoning effort of the current model, also for when it is chosen again."""
        self._efforts[self.agent.model.name] = effort
        self._run.agent = self.agent.with_model(effort=effort)

    async def list_efforts(self) -> Sequence[str]:
        """Return the levels of effort that the current model has, as far as they are known."""
        from trimtab.config.paths import find_home
        from trimtab.models.sources import Sources, find_offer

        home = self.setup.home or find_home(self.setup.env)
        sources = await Sources(self.setup.env, home).survey()
        offer = find_offer(self.agent.model.name, sources)
        return offer.efforts if offer is not None else ()

    def is_enabled(self, name: str) -> bool:
        """Return the value of a setting below `host.`."""
        from trimtab.config.host_settings import is_enabled

        custom = self.setup.customizations
        settings = custom.settings if custom is not None and custom.has_settings else None
        return is_enabled(settings, name)

    def set_vision(self, vision: bool) -> None:
        """Set whether images are sent to the model."""
        self._run.agent = self.agent.with_model(vision=vision)

    def set_citations(self, citations: bool) -> None:
        """Set whether the sources that the service gives for its replies are recorded."""
        self._run.agent = self.agent.with_model(citations=citations)

    def set_reasoning_summary(self, wanted: bool) -> None:
        """Set whether readable summaries of the reasoning are asked for."""
        self._run.agent = self.agent.with_model(reasoning_summary=wanted)

    def set_streaming(self, stream: bool) -> None:
        self._run.agent = self.agent.with_model(stream=stream)

    def set_tools(self, external: Sequence[Tool], offered: Collection[str]) -> None:
        """Set the tools of clients, and the names of built-in tools that clients make usable."""
        if not self.is_enabled("planExitMode.enabled"):
            offered = [name for name in offered if name != "exit_plan_mode"]
        self._client_tools, self._offered = external, offered
        if any(getattr(tool, "is_terminal", False) for tool in external):
            from trimtab.loop.processors.terminal_tools import TerminalTools

            self._run.agent = self.agent.with_parts(terminal_tools=TerminalTools())
        self._choose_tools()

    def use_editor(
        self, buffers: "EditorBuffers | None", terminals: "EditorTerminals | None"
    ) -> None:
        """Read and write files through an editor, and run commands in its terminals."""
        self.setup.workspace.editor = buffers
        self.setup.workspace.shells.terminals = terminals

    def change_options(self, **changes: Any) -> None:
        """Change fields of `SessionOptions` that have no method of their own."""
        self._owner.change(**changes)
        self._choose_tools()

    def with_customize(self, **changes: Any) -> CustomizationOptions:
        """Return the given customization options with other values for some fields."""
        return msgspec.structs.replace(self._owner.given.customize, **changes)

    def add_servers(self, servers: Mapping[str, object]) -> None:
        """Add MCP servers that a client supplies."""
        servers = {**self._owner.given.customize.servers, **servers}
        self.change_options(customize=self.with_customize(servers=servers))

    def set_agent(self, name: str | None) -> None:
        """Take on a custom agent's prompt, tools and model from the next prompt on.

        None returns to the default agent and to the model used before an agent was chosen.
        """
        custom = self.setup.customizations
        if custom is None:
            return
        own_model = self._model_without_agent or self._run.agent.model.name
        changes: dict[str, Any] = {"customize": self.with_customize(agent=name)}
        if name is not None and custom.models_of(custom.find_agent(name)):
            changes["model"] = None  # choosing an agent chooses its model
        options = self._owner.change(**changes)
        model = options.model if name is not None and options.model else own_model
        self._model_without_agent = None if name is None else own_model
        if model != self._run.agent.model.name:
            self.set_model(model, effort=options.effort)
        self._choose_tools()

    def switch_skill(self, name: str, *, enabled: bool) -> None:
        """Enable or disable a skill in this session only, also one that is found later."""
        custom = self.setup.customizations
        if custom is None:
            return
        custom.switched_skills[name] = enabled
        self.reload()

    def reload(self) -> None:
        """Read the customizations again, even if no file seems to have changed."""
        custom = self.setup.customizations
        if custom is not None:
            custom.reload()
            self._watcher.renew()
            self._choose_tools()

    async def fetch_client_skills(self) -> None:
        """Read the skills that clients provide, and use those that are new or have changed."""
        folder = self.setup.folder.client_skills
        if self._client.fetch_skills is None or not await self._client.fetch_skills(folder):
            return
        named = self._owner.given.customize.skill_directories
        if folder not in named:
            self._owner.change(customize=self.with_customize(skill_directories=(*named, folder)))
        self.reload()

    def set_permissions(self, permissions: PermissionOptions) -> None:
        """Replace the permission rules; approvals for this session are discarded."""
        before, after = self.options.permissions, permissions
        self._owner.change(permissions=permissions)
        policy = build_permissions(self.setup, self.options, self._client).given
        self.agent.parts.permissions.adopt(policy)
        if added := [path for path in after.add_dirs if path not in before.add_dirs]:
            checkout = self.setup.checkout.widen(added)
            self.setup = msgspec.structs.replace(self.setup, checkout=checkout)
            self.agent.parts.recorder.track(added)
        if before.allow_all_tools != after.allow_all_tools:
            names = {True: "allow-all", False: "manual"}
            self.setup.session.emit(
                SessionPermissionsChanged(
                    previous_mode=names[before.allow_all_tools], mode=names[after.allow_all_tools]
                )
            )

    async def set_folder(self, cwd: str) -> None:
        """Work in another folder from the next prompt on. Only while nothing runs.

        Instructions, agents, skills, trust and rules become those of the new folder. Hooks and
        MCP servers stay as they were loaded. Raises `UsageError`.
        """
        cwd = find_directory(self.options.cwd, cwd)
        if cwd == self.options.cwd:
            return
        if self.setup.sandbox is not None or self.setup.checkout.worktree is not None:
            raise UsageError(
                "A session in a sandbox or worktree stays in its folder; create a session in the "
                "other folder."
            )
        wanted = msgspec.structs.replace(self._owner.given, cwd=cwd)
        prepared = await self._folders.inspect(wanted, self._client)
        setup, checkout, trust = self.setup, prepared.checkout, prepared.trust
        rules = setup.rules
        if setup.home is not None:  # first, since rules that cannot be read end the change
            added = self.options.permissions.add_dirs
            rules = await load_rules(setup.home, trust, setup.session, added)
        setup.workspace.enter(cwd)
        if setup.customizations is not None:
            setup.customizations.move(checkout, trusted=trust.trusted, switched=trust.switched)
        if setup.hooks is not None:
            setup.hooks.move(cwd)
        options = self._owner.change(cwd=cwd)
        self.setup = msgspec.structs.replace(setup, checkout=checkout, trust=trust, rules=rules)
        if self._pool is not None:
            self._pool.setup = self.setup
        self.agent.parts.permissions.move(build_permissions(self.setup, options, self._client))
        self.agent.parts.recorder.track([cwd])
        setup.folder.update_metadata(cwd=cwd, **checkout.metadata())
        setup.session.emit(msgspec.convert(checkout.context(), SessionContextChanged))
        self._watcher.renew()
        self._choose_tools()

    def refresh(self) -> None:
        """Announce everything again before the next prompt."""
        self._stale = True

    def set_subagents(self, settings: JsonObject | None) -> None:
        """Set the models and efforts of sub-agents by name; they override the settings."""
        self.pool.overrides = settings or {}

    @property
    def has_agents(self) -> bool:
        """True if a sub-agent was started in this process."""
        return self._pool is not None

    def announce_tasks(self) -> None:
        """Announce that a command began or ended to run in the background."""
        if self._pool is not None:
            self._pool.changed()
        else:
            self.setup.session.emit(SessionBackgroundTasksChanged())

    @property
    def pool(self) -> "SubagentPool":
        """The sub-agents of the session."""
        if self._pool is None:
            from trimtab.agents.pool import SubagentPool
            from trimtab.agents.subagent import Subagent

            pool = SubagentPool(
                self.setup, self._client, self._models, lambda: self.options, self._run
            )
            pool.find_tools = self._subagent_tools
            pool.send_to_main = self.send
            pool.restore = lambda record: Subagent.restore(pool, record)
            self._pool = pool
        return self._pool

    def reach_agents(self, caller: Run, call_id: str) -> AgentsPort:
        """Return the port by which a tool call of an agent reaches the sub-agents."""
        from trimtab.agents.agent_calls import AgentCalls

        return AgentCalls(self.pool, caller, call_id)

    def _tool_conditions(self, run: Run) -> ToolConditions:
        return msgspec.structs.replace(
            self.setup.tool_conditions(run.agent.mode, run.agent.model.name),
            external=(*self._python_tools.tools, *self._client_tools),
            served=self.servers.choose_tools(run.agent.model.prompt_limit),
            offered=self._offered,
        )

    def _subagent_tools(self, run: Run) -> dict[str, Tool]:
        """Return the tools available to sub-agents, whatever the main agent's own tools are."""
        custom, options = self.setup.customizations, self.options
        if custom is not None and custom.agent is not None:
            options = msgspec.structs.replace(options, available_tools=custom.available_tools)
        options = msgspec.structs.replace(options, main_excluded=())
        return choose_tools(options, self._client, self._tool_conditions(run))

    def _choose_tools(self) -> None:
        tools = choose_tools(self.options, self._client, self._tool_conditions(self._run))
        self._run.agent = self.agent.with_tools(tools)
        self._stale = True

    def _on_servers_changed(self) -> None:
        """Update the tools after MCP servers added or removed some."""
        was_announced = not self._stale
        self._choose_tools()
        if was_announced:
            self.setup.session.emit(SessionToolsUpdated(model=self._run.agent.model.name))

    def _on_resource_update(self, server: str, uri: str) -> None:
        """Tell the model with the next prompt that a resource it has read has changed."""
        text = f"The resource {uri} of the MCP server {server} has changed since you read it."
        notice = f"<resource_changed_notice>\n{text}\n</resource_changed_notice>"
        if notice not in self._run.notices:
            self._run.notices.append(notice)

    def _announce_tool_changes(self) -> None:
        """Tell the model which tools were removed, and which ones MCP servers added."""
        before, now = self._announced_tools, {spec.name for spec in self._run.agent.specs}
        self._announced_tools = now
        removed = before - now
        served = {tool.spec.name for tool in self.servers.tools}
        added = served & (now - before) if before else ()
        lines = []
        if removed:
            names = ", ".join(sorted(removed))
            lines.append(f"These tools are no longer available; do not call them: {names}.")
        if added:
            lines.append(f"These tools are available from now on: {', '.join(sorted(added))}.")
        if lines:
            text = "\n".join(lines)
            self._run.notices.append(f"<tools_changed_notice>\n{text}\n</tools_changed_notice>")

    async def _build_prompt(self) -> SystemPrompt:
        case = PromptCase.of(self._run, self.setup.checkout, self.setup.customizations)
        prompt = await build_prompt(case, self.options, self._client.transform)
        if prompt.left_out and prompt.left_out != self.prompt.left_out:
            message = (
                f"The context window of {case.model} ({case.limit or DEFAULT:,} tokens) is too "
                "small for the whole system prompt, which now leaves out "
                f"{', '.join(prompt.left_out)}; see `trimtab prompt show`."
            )
            warning = SessionWarning(warning_type="prompt_shortened", message=message)
            self.setup.session.emit(warning)
        return prompt

    async def announce(self) -> None:
        """Before a prompt: announce changed customizations and tools, update the system message."""
        if self._run.agent.responder is not None:
            return  # another program answers, with tools and instructions of its own
        await self.fetch_client_skills()
        if self._watcher.has_changed():
            self.reload()
        if await self._python_tools.refresh():
            self._choose_tools()
        await self.servers.refresh()
        if not self._stale:
            return
        permissions, tools = self.agent.parts.permissions, self._run.agent.tools
        check_denied_tools(permissions.policy, self.setup, tools)
        self._stale = False
        session, run = self.setup.session, self._run
        if not self._model_announced and self._client.always_ask:
            self._model_announced = True
            session.emit(SessionModelChange(new_model=run.agent.model.name, cause="initial"))
        if self.setup.customizations is None:
            session.emit(SessionMcpServersLoaded(servers=[]))
            session.emit(SessionSkillsLoaded(skills=[]))
        else:
            for event in describe_loaded(self.setup.customizations, self.servers.describe()):
                session.emit(event)
        self._announce_tool_changes()
        self.prompt = await self._build_prompt()
        if self.prompt.text != session.conversation.system:
            session.emit(SystemMessage(role="system", content=self.prompt.text))
        session.emit(SessionToolsUpdated(model=run.agent.model.name))
