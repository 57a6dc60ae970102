"""Customizations as every package sees them: instructions, skills, agents, servers and problems."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from trimtab.contracts.permission import Rule

Kind = Literal[
    "instruction", "skill", "command", "agent", "mcp-server", "hook", "plugin", "setting"
]

Source = Literal[
    "builtin",
    "user",
    "repository",
    "plugin",
    "claude",
    "codex",
    "gemini",
    "cursor",
    "environment",
    "flag",
    "sdk",
]


Location = Literal["user", "repository", "working-directory", "directory"]
"""The place an instruction was found in; `directory` is a folder below the working directory."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person should know about a file. Lines count from 1; 0 means the whole file.

    A `note` says that something has no effect here; the rest of the file loads. `field` names the
    field at fault, and `entry` the entry it belongs to in a file of several.
    """

    message: str
    file: str = ""
    line: int = 0
    note: bool = False
    field: str = ""
    entry: str = ""

    @property
    def sentence(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.message}" if where else self.message


class Customization(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in the list of everything that affects a session.

    `scope` says when it applies (`always`, a glob, `on demand`). `overridden_by` names the file or
    place that takes precedence, and `why` gives the rule. `prompt` is the text it adds to the
    system prompt; whoever shows the entry counts its tokens. `fields` maps each field of its file
    to whether it is used, or why not.
    """

    name: str
    kind: Kind
    source: Source
    file: str = ""
    line: int = 0
    scope: str = "always"
    description: str = ""
    trusted: bool = True
    enabled: bool = True
    overridden_by: str = ""
    why: str = ""
    prompt: str = ""
    problems: tuple[Problem, ...] = ()
    fields: Mapping[str, str] = {}


class Instruction(msgspec.Struct, frozen=True, kw_only=True):
    """A text for the model, from one file or from several with the same text.

    `globs` limits it to matching files; without them it always applies. `paths` names every file
    it was found in; it was read from the first.
    """

    text: str
    paths: tuple[str, ...]
    source: Source
    location: Location
    globs: tuple[str, ...] = ()
    description: str = ""
    imports: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """The names of the fields in its file."""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt a person calls as `/name` and a model by the `skill` tool; commands are skills too.

    `origin` is the place it was found in, as Copilot names it. The body is read from disk on use.
    """

    name: str
    path: str
    description: str
    source: Source
    origin: str = "project"
    allowed_tools: tuple[str, ...] | None = None
    argument_hint: str = ""
    user_invocable: bool = True
    model_invocable: bool = True
    is_command: bool = False
    plugin: str = ""
    enabled: bool = True
    fields: tuple[str, ...] = ()


RUNTIME_NAMES = ("claude", "codex", "copilot", "opencode", "gemini", "pi")
"""The other agents whose programs can do an agent's work."""


class SkillTools(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that a skill is held to while it is at work, and what it allows unasked."""

    name: str
    tools: frozenset[str] | None = None
    """None if it is not held to any."""
    rules: tuple[Rule, ...] = ()


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A custom agent: a prompt with its tools and models.

    `name` comes from the file's name, `alias` from its contents. `tools` None means all tools. The
    first available model of `models` is used; if `model_policy` is required, no other may be.
    """

    name: str
    path: str
    source: Source
    prompt: str
    alias: str = ""
    display_name: str = ""
    description: str = ""
    tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    model_policy: Literal["preferred", "required"] = "preferred"
    effort: str | None = None
    mcp_servers: Mapping[str, Any] = {}
    skills: tuple[str, ...] = ()
    hooks: Mapping[str, Any] = {}
    model_invocable: bool = True
    user_invocable: bool = True
    include_instructions: bool = False
    runtime: str = ""
    """The runtime that does its work; empty for our own loop."""
    read_only: bool = False
    """True if it must not change anything, whatever its tools could do."""
    origin: str = "project"
    plugin: str = ""
    fields: tuple[str, ...] = ()


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an MCP server: a program to start (`local`), or an address."""

    name: str
    type: Literal["local", "http", "sse"]
    source: Source
    file: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    tools: tuple[str, ...] = ("*",)
    excluded_tools: tuple[str, ...] = ()
    timeout: int | None = None
    """In milliseconds."""
    filter_mapping: str | Mapping[str, str] | None = None
    display_name: str = ""
    enabled: bool = True
    extra: Mapping[str, Any] = {}
    """Fields that only affect the connection."""
    digest: str = ""
    """Digest of the entry as written, before variables are expanded."""
    fields: tuple[str, ...] = ()


class Shadowed(msgspec.Struct, frozen=True):
    """A customization that is not used: another overrides it (`by`), or a rule excludes it."""

    name: str
    path: str
    source: Source
    by: str
    why: str
    fields: tuple[str, ...] = ()


class FoundInstructions(msgspec.Struct, frozen=True):
    """The instructions of a session in the order of merging, and the problems of their files."""

    instructions: tuple[Instruction, ...] = ()
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Shadowed, ...] = ()

    @property
    def always(self) -> tuple[Instruction, ...]:
        """The instructions that apply to every file."""
        return tuple(text for text in self.instructions if not text.globs)


class FoundSkills(msgspec.Struct, frozen=True):
    """Skills by name, the skills they override, and the problems of their files."""

    skills: dict[str, Skill] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def active(self) -> list[Skill]:
        return [skill for skill in self.skills.values() if skill.enabled]


class FoundAgents(msgspec.Struct, frozen=True):
    """Agents by file name, the agents they override, and the problems of their files."""

    agents: dict[str, AgentDefinition] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()

    def find(self, name: str) -> AgentDefinition | None:
        """Find an agent by its file name, alias or display name."""
        if name in self.agents:
            return self.agents[name]
        wanted = name.lower()
        for key, agent in self.agents.items():
            if wanted in (key.lower(), agent.alias.lower(), agent.display_name.lower()):
                return agent
        return None
