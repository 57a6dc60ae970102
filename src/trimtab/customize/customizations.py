"""`Customizations`: everything a session loads from disk, on first use."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import Checkout, find_suffixes
from trimtab.config.feature_flags import resolve_flags
from trimtab.config.paths import Home
from trimtab.config.settings import Settings
from trimtab.config.trust import Trust
from trimtab.contracts.customization import (
    AgentDefinition,
    FoundAgents,
    FoundInstructions,
    FoundSkills,
    Instruction,
    Problem,
    Skill,
    SkillTools,
)
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.customize.folders import (
    SKILLS_VARIABLE,
    agent_folders,
    command_folders,
    has_instructions,
    named_agent_folders,
    named_folders,
    skill_folders,
)
from trimtab.customize.places import Places, find_places
from trimtab.loop.processors.skills import wrap
from trimtab.providers.windows import DEFAULT
from trimtab.tools.catalog import NAMES

if TYPE_CHECKING:
    from trimtab.config.feature_flags import Flag
    from trimtab.customize.language_servers import FoundLanguageServers
    from trimtab.customize.mcp_servers import FoundServers
    from trimtab.customize.plugins import Plugin
    from trimtab.customize.server_entry import ServerFile
    from trimtab.customize.touched_instructions import TouchedInstructions

SETTINGS_FILES = ("settings.json", "settings.local.json")
READ = (
    *("settings", "flags", "features", "all_plugins", "instructions", "skills", "agents"),
    *("servers", "_touched"),
)
"""Properties that cache what was read from disk."""
ALWAYS_OFFERED = ("task_complete", "ask_user", "exit_plan_mode")
"""Tools that every agent has, because it needs them to end and to ask."""


class Customizations:
    """The customizations of a session. Parsers are imported only if there are files to parse."""

    def __init__(
        self, home: Home, env: Mapping[str, str], checkout: Checkout, options: SessionOptions
    ) -> None:
        self._home = home
        self.env = env
        self.checkout = checkout
        self.given = options
        """The options as the caller gave them, without those of the agent and of settings."""
        self.agent: AgentDefinition | None = None
        self.switched: Collection[str] = ()
        self.loads_instructions = options.instructions == "load"
        self.switched_skills: dict[str, bool] = {}
        self._prompts: dict[str, str] = {}
        """Prompts that a client gave agents in place of their own."""
        self.family_models: dict[str, str] = {}
        """Model family, such as `sonnet` → the model that is used for it."""
        self.model_problems: tuple[Problem, ...] = ()
        self.warned: set[str] = set()
        self.window = DEFAULT
        self._known_texts: Collection[str] = ()

    @cached_property
    def trusted(self) -> bool:
        """True if the configuration in the folder may be used."""
        if self.env.get("COPILOT_ALLOW_ALL") == "true":
            return True
        return Trust(self._home).is_trusted(self.checkout.cwd)

    @cached_property
    def places(self) -> Places:
        return find_places(
            self.checkout.cwd,
            self._home,
            self.env,
            repository=self.checkout.git_root,
            trusted=self.trusted,
        )

    @property
    def has_settings(self) -> bool:
        """True if a settings file exists."""
        files = [self._home.settings]
        if self.trusted:
            folder = os.path.join(self.places.root, ".github", "copilot")
            files += [os.path.join(folder, name) for name in SETTINGS_FILES]
        return any(map(os.path.exists, files))

    @cached_property
    def suffixes(self) -> frozenset[str]:
        """The suffixes of files near the top of the working directory."""
        return find_suffixes(self.checkout.cwd)

    @cached_property
    def language_servers(self) -> "FoundLanguageServers":
        """The language servers for the files here. None of them is started."""
        from trimtab.customize.language_servers import FoundLanguageServers, find_language_servers

        if not self.trusted or "LSP_TOOLS" not in self.features:
            return FoundLanguageServers()
        plugins = [(plugin.file, plugin.language_servers) for plugin in self.plugins]
        return find_language_servers(
            self.places, self.suffixes, [entry for entry in plugins if entry[1]]
        )

    @cached_property
    def settings(self) -> Settings:
        return Settings(self._home, self.places.root if self.trusted else None)

    @property
    def telemetry_env(self) -> Mapping[str, str]:
        """The environment, with what the setting `telemetry` adds to it for the export."""
        if not self.has_settings or "telemetry" not in self.settings.values:
            return self.env
        from trimtab.customize.telemetry_settings import telemetry_variables

        return {**telemetry_variables(self.settings), **self.env}

    @cached_property
    def flags(self) -> "Mapping[str, Flag]":
        """The feature flags. They do not depend on other customizations."""
        given = self.given.customize
        return resolve_flags(
            self._home, self.env, experimental=given.experimental, given=given.features
        )

    @cached_property
    def features(self) -> frozenset[str]:
        """The names of the enabled feature flags."""
        return frozenset(flag.name for flag in self.flags.values() if flag.enabled)

    @property
    def refused_features(self) -> frozenset[str]:
        """The names of the feature flags that somebody turned off."""
        return frozenset(flag.name for flag in self.flags.values() if flag.refused)

    def require_feature(self, name: str, use: str) -> None:
        """Raise `UsageError` if somebody turned off the feature flag that `use` needs."""
        flag = self.flags[name]
        if flag.refused:
            raise UsageError(
                f"{use} cannot be used: {flag.decided_by} turns the feature {name} off; "
                f"leave that out, or add --feature {name}=on."
            )

    @cached_property
    def all_plugins(self) -> "tuple[Plugin, ...]":
        """Installed plugins and those that a flag names, including disabled ones."""
        wanted = self.given.customize
        installed = os.path.join(self._home.config, "installed-plugins")
        if not wanted.plugin_dirs and not (wanted.discover and os.path.isdir(installed)):
            return ()
        from trimtab.customize.plugins import find_plugins

        return find_plugins(self._home, wanted.plugin_dirs, installed=wanted.discover)

    @property
    def plugins(self) -> "list[Plugin]":
        """The plugins that are enabled and trusted."""
        return [plugin for plugin in self.all_plugins if plugin.enabled and plugin.trusted]

    @cached_property
    def instructions(self) -> FoundInstructions:
        children = self.settings.get("enableChildInstructions", bool, False)
        extra = self.given.customize.instruction_directories
        if not extra and not has_instructions(self.places, children):
            return FoundInstructions()
        from trimtab.customize.instructions import find_instructions

        return find_instructions(self.places, children=children, extra=extra)

    @cached_property
    def skills(self) -> FoundSkills:
        """Skills and commands, without their texts."""
        places, wanted, settings = self.places, self.given.customize, self.settings
        if not wanted.loads_skills:
            return FoundSkills()
        folders = named_folders(places, wanted.skill_directories, "sdk")
        if wanted.discover:
            folders += skill_folders(places)
        folders += [folder for plugin in self.plugins for folder in plugin.skill_folders]
        if wanted.discover:
            more = settings.get("skillDirectories", list[str], [])
            folders += named_folders(places, (*places.directories(SKILLS_VARIABLE), *more))
            folders += command_folders(places)
        ignored = settings.get("ignoredSkillsLocations", list[str], [])
        folders = [
            folder
            for folder in folders
            if places.shorten(folder.path) not in ignored and os.path.exists(folder.path)
        ]
        if not folders:
            return FoundSkills()
        from trimtab.customize.skills import find_skills

        disabled = {*settings.get("disabledSkills", list[str], []), *wanted.disabled_skills}
        switched = self.switched_skills
        unused = {name for name in (*disabled, *switched) if not switched.get(name, False)}
        return find_skills(folders, unused, os.path.join(self._home.state, "cache"))

    @cached_property
    def agents(self) -> FoundAgents:
        """Agents in files, and built-in agents. Parses all files."""
        from trimtab.customize.agents import find_agents

        named = named_agent_folders(self.places, self.given.customize.agent_directories)
        extra = [folder for plugin in self.plugins for folder in plugin.agent_folders]
        found = find_agents([*named, *agent_folders(self.places), *extra], known_tools=NAMES)
        if not self._prompts:
            return found
        changed = {name: self._with_prompt(agent) for name, agent in found.agents.items()}
        return msgspec.structs.replace(found, agents=changed)

    def _with_prompt(self, agent: AgentDefinition) -> AgentDefinition:
        return msgspec.structs.replace(agent, prompt=self._prompts.get(agent.name, agent.prompt))

    def set_prompt(self, name: str, prompt: str) -> None:
        """Give an agent another prompt, in this session only. Raises `UsageError`."""
        if name not in self.callable_agents and self.agents.find(name) is None:
            raise UsageError(f"Agent {name!r} is not available in this session; name another.")
        self._prompts[name] = prompt
        self.__dict__.pop("agents", None)

    @cached_property
    def servers(self) -> "FoundServers":
        """The configured MCP servers. Nothing connects to them here."""
        from trimtab.customize import mcp_servers as found

        wanted = self.given.customize
        disabled = self.settings.get("disabledMcpServers", list[str], [])
        disabled += wanted.disabled_servers
        files = self._builtin_servers()
        if wanted.discover:
            files += found.server_files(self.server_places, self.features)
        files += [file for plugin in self.plugins for file in plugin.servers]
        if self.agent is not None and self.agent.mcp_servers:
            files.append(found.agent_servers(self.agent))
        if wanted.servers:
            files.append(found.given_servers(wanted.servers))
        return found.find_servers(files, self.places, wanted.mcp_config, disabled)

    def _builtin_servers(self) -> "list[ServerFile]":
        if not self.given.customize.discover:
            return []
        from trimtab.customize.github_server import github_server

        tools = self.settings.get("githubMcpTools", list[str], [])
        toolsets = self.settings.get("githubMcpToolsets", list[str], [])
        server = github_server(self.given.customize.github, tools, toolsets, self.env)
        return [] if server is None else [server]

    @property
    def server_places(self) -> Places:
        """The places of MCP servers. A person may trust a folder for its servers only."""
        places = self.places
        trusted = places.trusted or "mcp" in self.switched
        return msgspec.structs.replace(places, trusted=trusted)

    def find_skill(self, name: str) -> Skill | None:
        skill = self.skills.skills.get(name)
        return skill if skill is not None and skill.enabled else None

    @property
    def offered_skills(self) -> dict[str, Skill]:
        """The skills that a model may load by itself."""
        if "SKILLS_INSTRUCTIONS" not in self.features:
            return {}
        return {skill.name: skill for skill in self.skills.active if skill.model_invocable}

    def find_agent(self, name: str) -> AgentDefinition:
        """Return the agent of a name. Raises `UsageError` unless a person may choose it."""
        given = self.given.customize.agents
        agent = next((agent for agent in given if agent.name == name), None) or self.agents.find(
            name
        )
        if agent is not None and agent.user_invocable:
            return agent
        reason = "is for other agents only" if agent else "does not exist"
        known = (*given, *self.agents.agents.values())
        left_out = (p for p in self.agents.problems if "is left out" in p.message)
        named = (p for p in left_out if os.path.basename(p.file).partition(".")[0] == name)
        if problem := next(named, None):
            raise UsageError(f"There is no agent {name!r} to choose; {problem.sentence}.")
        names = ", ".join(dict.fromkeys(agent.name for agent in known if agent.user_invocable))
        raise UsageError(f"There is no agent {name!r} to choose: it {reason}; use one of {names}.")

    @property
    def available_tools(self) -> tuple[str, ...] | None:
        """The tools that the options name, whatever the main agent uses of them."""
        return self.given.available_tools

    @property
    def excluded_agents(self) -> tuple[str, ...]:
        """Built-in agents that the options exclude."""
        return self.given.customize.excluded_agents

    @property
    def callable_agents(self) -> dict[str, AgentDefinition]:
        """The agents that another agent may start, including built-in ones."""
        wanted = self.given.customize
        found: Mapping[str, AgentDefinition] = self.agents.agents
        if not wanted.discover:
            always = ("builtin", "sdk", "plugin")
            found = {name: agent for name, agent in found.items() if agent.source in always}
        every = {**found, **{agent.name: self._with_prompt(agent) for agent in wanted.agents}}
        excluded = wanted.excluded_agents
        return {
            name: agent
            for name, agent in every.items()
            if agent.model_invocable and not (agent.source == "builtin" and name in excluded)
        }

    @property
    def offered_agents(self) -> dict[str, str]:
        """Name → description of the callable agents that are not built in."""
        wanted = self.given.customize
        named = wanted.agents or wanted.agent_directories
        if not named and not ((wanted.discover or self.plugins) and self.has_agent_files()):
            return {}
        return {
            name: agent.description
            for name, agent in self.callable_agents.items()
            if agent.source != "builtin"
        }

    def adopt_agent(self, options: SessionOptions) -> SessionOptions:
        """Set the main agent that the options name; return the options with its defaults."""
        name = options.customize.agent
        self.agent = agent = None if name is None else self.find_agent(name)
        self.__dict__.pop("servers", None)  # the agent's file may configure servers
        if agent is None:
            return options
        tools = options.available_tools
        if agent.tools is not None and tools is None:
            tools = (*agent.tools, *ALWAYS_OFFERED, *(("skill",) if agent.skills else ()))
        models = self.models_of(agent)
        model, *others = (options.model,) if options.model else models or (None,)
        fallback = (*(other for other in others if other), *options.fallback)
        if agent.model_policy == "required" and agent.models:
            if model not in models:
                known = " or ".join(agent.models)
                raise UsageError(f"The agent {agent.name} works with {known} only; use that model.")
            fallback = tuple(other for other in fallback if other in models)
        return msgspec.structs.replace(
            options,
            model=model,
            fallback=fallback,
            effort=options.effort or agent.effort,
            runtime=options.runtime or agent.runtime or None,
            available_tools=tools,
            excluded_tools=(*options.excluded_tools, *agent.denied_tools),
        )

    def models_of(self, agent: AgentDefinition) -> tuple[str, ...]:
        """Return the models of an agent, with families resolved; unresolved ones are left out.

        A built-in agent has none here: as the main agent it works with the session's model.
        """
        if agent.source == "builtin":
            return ()
        if agent.runtime and self.given.runtime_models != "host":
            return agent.models  # names of the runtime's own models
        from trimtab.customize.agents import MODEL_ALIASES

        models = [
            self.family_models.get(model) if model in MODEL_ALIASES else model
            for model in agent.models
        ]
        return tuple(model for model in models if model)

    def agent_prompt(self) -> str:
        """Return the main agent's prompt, with the skills it preloads."""
        if self.agent is None:
            return ""
        from trimtab.customize.agents import fill_prompt
        from trimtab.customize.skills import read_body

        wanted = [skill for name in self.agent.skills if (skill := self.find_skill(name))]
        parts = (wrap(skill, read_body(skill)) for skill in wanted)
        return "\n\n".join((fill_prompt(self.agent, self.checkout.cwd), *parts))

    def render(self, instruction: Instruction) -> str:
        """Return an instruction as the model sees it."""
        from trimtab.prompts.instructions import render_instruction

        names = [self.places.shorten(path) for path in instruction.paths]
        return render_instruction(instruction.text, names)

    def render_touched(self, instruction: Instruction) -> str:
        """Return an instruction for a touched path, cut to half of the window."""
        return self.render(msgspec.structs.replace(instruction, text=self._fit(instruction.text)))

    def _fit(self, text: str) -> str:
        from trimtab.prompts.instructions import fit_instructions

        return fit_instructions([text], self.window)[0]

    def prompt_instructions(self, window: int) -> tuple[str, ...]:
        """Return the texts of the instructions for all files, cut to fit the window."""
        always = self.instructions.always if self.loads_instructions else ()
        texts = []
        if always:
            from trimtab.prompts.instructions import fit_instructions

            fitted = fit_instructions([instruction.text for instruction in always], window)
            shown = zip(always, fitted, strict=True)
            texts = [
                self.render(msgspec.structs.replace(instruction, text=text))
                for instruction, text in shown
            ]
        if organization := self.given.customize.organization_instructions:
            from trimtab.prompts.instructions import render_instruction

            texts.append(render_instruction(organization, ["your organization"]))
        return tuple(texts)

    def prompt_skills(self, window: int = 0) -> str:
        """Return the list of skills that a model may load, cut to fit the window."""
        offered = self.offered_skills.values()
        if not offered:
            return ""
        from trimtab.prompts.instructions import list_skills

        return list_skills([(skill.name, skill.description) for skill in offered], window)

    def touch(self, path: str) -> Sequence[Instruction]:
        """Return the instructions for a path that a tool touched, each once per session."""
        wanted = self.loads_instructions and self.given.customize.loads_touched_instructions
        return self._touched.touch(path) if wanted else ()

    @cached_property
    def _touched(self) -> "TouchedInstructions":
        from trimtab.customize.touched_instructions import TouchedInstructions

        return TouchedInstructions(self.places, self.instructions, self._known_texts)

    def skill_tools(self, skill: Skill, *, by_person: bool) -> SkillTools:
        """Return the tools a skill is held to, and what it allows."""
        from trimtab.customize.skill_tools import find_skill_tools

        return find_skill_tools(skill, by_person=by_person)

    def read_skill(self, skill: Skill) -> str:
        """Return the current text of a skill, cut to half of the window."""
        from trimtab.customize.skills import read_body

        return self._fit(read_body(skill))

    def move(self, checkout: Checkout, *, trusted: bool, switched: Collection[str]) -> None:
        """Use the customizations of another folder from now on."""
        self.checkout, self.trusted, self.switched = checkout, trusted, switched
        for name in ("places", "suffixes", "language_servers"):
            self.__dict__.pop(name, None)
        self.reload()

    def reload(self) -> None:
        """Discard what was read; it is read again on next use."""
        if (touched := self.__dict__.get("_touched")) is not None:
            self._known_texts = touched.known
        for name in READ:
            self.__dict__.pop(name, None)
        if self.agent is not None and self.agent.path:
            self.agent = self.agents.find(self.agent.name) or self.agent

    def is_loaded(self, part: str) -> bool:
        """Return True if a part, such as `agents`, was read from disk."""
        return part in self.__dict__

    @property
    def brings_servers(self) -> bool:
        """True if a flag, a client, a plugin or the main agent may configure MCP servers."""
        given = self.given.customize
        named = given.mcp_config or given.servers or (self.agent and self.agent.mcp_servers)
        if named or self.plugins:
            return True
        if not given.discover:
            return False
        from trimtab.customize.github_token import find_github_token

        return bool(find_github_token(self.env))

    def has_agent_files(self) -> bool:
        if any(plugin.agents for plugin in self.plugins):
            return True
        return any(os.path.isdir(folder.path) for folder in agent_folders(self.places))
