"""What a session loads from disk: found when it is first asked for, and then kept."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.checkout import Checkout
from trimtab.config.paths import Home
from trimtab.contracts.customization import (
    AgentDefinition,
    FoundAgents,
    FoundInstructions,
    FoundSkills,
    Instruction,
    Problem,
    Skill,
)
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import SessionOptions
from trimtab.customize.folders import (
    SKILLS_VARIABLE,
    agent_folders,
    command_folders,
    has_instructions,
    named_folders,
    skill_folders,
)
from trimtab.customize.places import Places, find_places
from trimtab.providers.windows import DEFAULT

if TYPE_CHECKING:
    from trimtab.config.settings import Settings
    from trimtab.customize.instructions import Touched
    from trimtab.customize.mcp_servers import FoundServers
    from trimtab.customize.plugins import Plugin

SETTINGS_FILES = ("settings.json", "settings.local.json")
READ = ("settings", "all_plugins", "instructions", "skills", "agents", "servers", "_touched")
"""What is read from disk and kept."""
ALWAYS_OFFERED = ("task_complete", "ask_user", "exit_plan_mode")
"""Tools an agent has whatever its file says: without them it could not end or ask."""


class Customizations:
    """The customizations of one session. Modules that parse are imported when there is a file."""

    def __init__(
        self, home: Home, env: Mapping[str, str], around: Checkout, options: SessionOptions
    ) -> None:
        self._home = home
        self.env = env
        self.around = around
        self.given = options
        """The options as they were given, without what an agent or settings add."""
        self.agent: AgentDefinition | None = None
        self.switched: Collection[str] = ()
        self.loads_instructions = options.instructions == "load"
        self.switched_skills: dict[str, bool] = {}
        self.meant_models: dict[str, str] = {}
        self.model_problems: tuple[Problem, ...] = ()
        self.warned: set[str] = set()
        self.window = DEFAULT
        self._given: Collection[str] = ()

    @cached_property
    def trusted(self) -> bool:
        """Whether what the folder configures may be used."""
        if self.env.get("COPILOT_ALLOW_ALL") == "true":
            return True
        from trimtab.config.trust import Trust

        return Trust(self._home).is_trusted(self.around.cwd)

    @cached_property
    def places(self) -> Places:
        return find_places(
            self.around.cwd,
            self._home,
            self.env,
            repository=self.around.git_root,
            trusted=self.trusted,
        )

    @property
    def has_settings(self) -> bool:
        """Whether there is a file to read; most people have none."""
        files = [self._home.settings]
        if self.trusted:
            folder = os.path.join(self.places.root, ".github", "copilot")
            files += [os.path.join(folder, name) for name in SETTINGS_FILES]
        return any(map(os.path.exists, files))

    @cached_property
    def settings(self) -> "Settings":
        from trimtab.config.settings import Settings

        return Settings(self._home, self.places.root if self.trusted else None)

    @cached_property
    def features(self) -> frozenset[str]:
        """The feature flags that are on. They are known before anything else is loaded."""
        from trimtab.config.feature_flags import resolve_flags

        experimental = self.given.customize.experimental
        flags = resolve_flags(self._home, self.env, experimental=experimental)
        return frozenset(flag.name for flag in flags.values() if flag.enabled)

    @cached_property
    def all_plugins(self) -> "tuple[Plugin, ...]":
        """Installed plugins and those a flag names, disabled ones too."""
        wanted = self.given.customize
        installed = os.path.join(self._home.config, "installed-plugins")
        if not wanted.plugin_dirs and not (wanted.discover and os.path.isdir(installed)):
            return ()
        from trimtab.customize.plugins import find_plugins

        return find_plugins(self._home, wanted.plugin_dirs)

    @property
    def plugins(self) -> "list[Plugin]":
        """Those that are used."""
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
        """Skills and commands, without the text of any."""
        places, wanted, settings = self.places, self.given.customize, self.settings
        folders = named_folders(places, wanted.skill_directories, "sdk")
        if wanted.discover:
            more = settings.get("skillDirectories", list[str], [])
            folders += skill_folders(places)
            folders += [folder for plugin in self.plugins for folder in plugin.skill_folders]
            folders += named_folders(places, (*places.directories(SKILLS_VARIABLE), *more))
            folders += command_folders(places)
        ignored = settings.get("ignoredSkillsLocations", list[str], [])
        folders = [
            one
            for one in folders
            if places.shorten(one.path) not in ignored and os.path.exists(one.path)
        ]
        if not folders:
            return FoundSkills()
        from trimtab.customize.skills import find_skills

        disabled = {*settings.get("disabledSkills", list[str], []), *wanted.disabled_skills}
        switched = self.switched_skills
        off = {name for name in (*disabled, *switched) if not switched.get(name, False)}
        return find_skills(folders, off, os.path.join(self._home.state, "cache"))

    @cached_property
    def agents(self) -> FoundAgents:
        """Those on disk and those that come with the program; parses all of them."""
        from trimtab.customize.agents import find_agents
        from trimtab.tools.catalog import NAMES

        extra = [folder for plugin in self.plugins for folder in plugin.agent_folders]
        return find_agents([*agent_folders(self.places), *extra], known_tools=NAMES)

    @cached_property
    def servers(self) -> "FoundServers":
        """MCP servers as they are configured; connecting to them is not done here."""
        from trimtab.customize import mcp_servers as found

        wanted = self.given.customize
        disabled = self.settings.get("disabledMcpServers", list[str], [])
        files = found.server_files(self.server_places) if wanted.discover else []
        files += [file for plugin in self.plugins for file in plugin.servers]
        if self.agent is not None and self.agent.mcp_servers:
            files.append(found.agent_servers(self.agent))
        if wanted.servers:
            files.append(found.given_servers(wanted.servers))
        return found.find_servers(files, self.places, wanted.mcp_config, disabled)

    @property
    def server_places(self) -> Places:
        """Where MCP servers are looked for: a folder may be trusted with those alone."""
        places = self.places
        trusted = places.trusted or "mcp" in self.switched
        return msgspec.structs.replace(places, trusted=trusted)

    def find_skill(self, name: str) -> Skill | None:
        skill = self.skills.skills.get(name)
        return skill if skill is not None and skill.enabled else None

    @property
    def offered_skills(self) -> dict[str, Skill]:
        """Those a model may load by itself."""
        return {skill.name: skill for skill in self.skills.active if skill.model_invocable}

    def find_agent(self, name: str) -> AgentDefinition:
        """An agent a person may choose: one its client brought, else one that was found."""
        given = self.given.customize.agents
        agent = next((one for one in given if one.name == name), None) or self.agents.find(name)
        if agent is not None and agent.user_invocable:
            return agent
        reason = "is for other agents only" if agent else "does not exist"
        known = (*given, *self.agents.agents.values())
        names = ", ".join(dict.fromkeys(one.name for one in known if one.user_invocable))
        raise UsageError(f"There is no agent {name!r} to choose: it {reason}; use one of {names}.")

    @property
    def available_tools(self) -> tuple[str, ...] | None:
        """The tools the session was given, whatever its main agent wants of them."""
        return self.given.available_tools

    @property
    def excluded_agents(self) -> tuple[str, ...]:
        """Built-in agents the session was told not to start."""
        return self.given.customize.excluded_agents

    @property
    def callable_agents(self) -> dict[str, AgentDefinition]:
        """Agents that may be started by another one, built-in ones included."""
        wanted = self.given.customize
        found: Mapping[str, AgentDefinition] = self.agents.agents
        if not wanted.discover:
            found = {name: one for name, one in found.items() if one.source == "builtin"}
        every = {**found, **{one.name: one for one in wanted.agents}}
        hidden = wanted.excluded_agents
        return {
            name: one
            for name, one in every.items()
            if one.model_invocable and not (one.source == "builtin" and name in hidden)
        }

    @property
    def offered_agents(self) -> dict[str, str]:
        """What those people wrote are for, by name. Without any, no file is read."""
        wanted = self.given.customize
        if not wanted.agents and not (wanted.discover and self.has_agent_files()):
            return {}
        return {
            name: one.description
            for name, one in self.callable_agents.items()
            if one.source != "builtin"
        }

    def adopt_agent(self, options: SessionOptions) -> SessionOptions:
        """The choices of a session whose main agent was named: the agent's, where none was made."""
        name = options.customize.agent
        self.agent = agent = None if name is None else self.find_agent(name)
        self.__dict__.pop("servers", None)  # an agent's file may bring some
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
            fallback = tuple(one for one in fallback if one in models)
        return msgspec.structs.replace(
            options,
            model=model,
            fallback=fallback,
            effort=options.effort or agent.effort,
            available_tools=tools,
            excluded_tools=(*options.excluded_tools, *agent.denied_tools),
        )

    def models_of(self, agent: AgentDefinition) -> tuple[str, ...]:
        """The models of an agent; a family by the model it means, none if that is not known."""
        from trimtab.customize.agents import MODEL_ALIASES

        meant = [
            self.meant_models.get(one) if one in MODEL_ALIASES else one for one in agent.models
        ]
        return tuple(one for one in meant if one)

    def agent_prompt(self) -> str:
        """What the main agent's file says, and the skills it wants from the start."""
        if self.agent is None:
            return ""
        from trimtab.customize.agents import fill_prompt
        from trimtab.customize.skills import read_body
        from trimtab.loop.processors.skills import wrap

        wanted = [skill for name in self.agent.skills if (skill := self.find_skill(name))]
        parts = (wrap(skill, read_body(skill)) for skill in wanted)
        return "\n\n".join((fill_prompt(self.agent, self.around.cwd), *parts))

    def render(self, instruction: Instruction) -> str:
        """An instruction as the model sees it."""
        from trimtab.prompts.instructions import render_instruction

        names = [self.places.shorten(path) for path in instruction.paths]
        return render_instruction(instruction.text, names)

    def render_touched(self, instruction: Instruction) -> str:
        """One that comes while the model works, cut where it would fill half of the window."""
        return self.render(msgspec.structs.replace(instruction, text=self._fit(instruction.text)))

    def _fit(self, text: str) -> str:
        from trimtab.prompts.instructions import fit_instructions

        return fit_instructions([text], self.window)[0]

    def prompt_instructions(self, window: int) -> tuple[str, ...]:
        """The texts of all instructions that always apply, as far as a window has room."""
        always = self.instructions.always if self.loads_instructions else ()
        texts = []
        if always:
            from trimtab.prompts.instructions import fit_instructions

            fitted = fit_instructions([one.text for one in always], window)
            shown = zip(always, fitted, strict=True)
            texts = [self.render(msgspec.structs.replace(one, text=text)) for one, text in shown]
        if organization := self.given.customize.organization_instructions:
            from trimtab.prompts.instructions import render_instruction

            texts.append(render_instruction(organization, ["your organization"]))
        return tuple(texts)

    def prompt_skills(self, window: int = 0) -> str:
        """The list of skills a model may load, as long as its window has room for."""
        offered = self.offered_skills.values()
        if not offered:
            return ""
        from trimtab.prompts.instructions import list_skills

        return list_skills([(skill.name, skill.description) for skill in offered], window)

    def touch(self, path: str) -> Sequence[Instruction]:
        """What applies to a path once it is touched, each instruction once."""
        return self._touched.touch(path) if self.loads_instructions else ()

    @cached_property
    def _touched(self) -> "Touched":
        from trimtab.customize.instructions import Touched

        return Touched(self.places, self.instructions, self._given)

    def read_skill(self, skill: Skill) -> str:
        """What a skill says, now, as far as half of the window has room."""
        from trimtab.customize.skills import read_body

        return self._fit(read_body(skill))

    def reload(self) -> None:
        """Forget what was read: it is read again when it is next asked for."""
        if (touched := self.__dict__.get("_touched")) is not None:
            self._given = touched.known
        for name in READ:
            self.__dict__.pop(name, None)
        if self.agent is not None and self.agent.path:
            self.agent = self.agents.find(self.agent.name) or self.agent

    @property
    def brings_servers(self) -> bool:
        """Whether a flag, a client or the main agent names MCP servers."""
        given = self.given.customize
        named = given.mcp_config or given.servers or (self.agent and self.agent.mcp_servers)
        return bool(named or self.plugins)

    def has_agent_files(self) -> bool:
        if any(plugin.agents for plugin in self.plugins):
            return True
        return any(os.path.isdir(folder.path) for folder in agent_folders(self.places))
