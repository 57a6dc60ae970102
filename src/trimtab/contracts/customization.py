"""What people put on disk to shape an agent, as every part sees it."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

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
"""Where an instruction was found; `directory` is one below the working directory."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a file that a person should know. Lines count from 1; 0 is the whole file.

    A `note` says that something has no effect here; everything else loads. `field` is what it is
    about, and `entry` whose field, in a file that has several entries.
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
    """One entry of the view over everything that affects a session.

    `scope` says when it applies (`always`, a glob, `on demand`). `overridden_by` names the file or
    place that wins and `why` the rule by which it does. `prompt` is what it adds to the prompt of
    a session; its tokens are counted by whoever shows the entry. `fields` says of every field its
    file has whether it is used, or why not.
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
    """A text for the model from one file, or from several that say the same.

    `globs` limits it to files that match; without it, it always applies. `paths` names every file
    it was found in, the first being where it was read.
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

    `origin` is where it was found, in Copilot's words. The body stays on disk until it is used.
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


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A custom agent: a prompt with the tools and models it wants.

    `name` is that of the file, `alias` the one in it. `tools` None stands for all of them. The
    first of `models` that is available is used; with `model_policy` required no other.
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
    read_only: bool = False
    """Whether it is kept from changing anything, whatever its tools could."""
    origin: str = "project"
    plugin: str = ""
    fields: tuple[str, ...] = ()


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """How an MCP server is reached: a program to start (`local`), or an address."""

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
    """Fields that change nothing but how it is connected to."""
    digest: str = ""
    """Of its entry as it was written, before variables were filled in."""
    fields: tuple[str, ...] = ()


class Shadowed(msgspec.Struct, frozen=True):
    """Something that is not used because another takes its place, or by a rule without one."""

    name: str
    path: str
    source: Source
    by: str
    why: str
    fields: tuple[str, ...] = ()


class FoundInstructions(msgspec.Struct, frozen=True):
    """The instructions of a session in the order they are merged, and what is wrong with them."""

    instructions: tuple[Instruction, ...] = ()
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Shadowed, ...] = ()

    @property
    def always(self) -> tuple[Instruction, ...]:
        """Those that apply whatever is worked on."""
        return tuple(one for one in self.instructions if not one.globs)


class FoundSkills(msgspec.Struct, frozen=True):
    """Skills by name, those they hide, and what is wrong with files."""

    skills: dict[str, Skill] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def active(self) -> list[Skill]:
        return [skill for skill in self.skills.values() if skill.enabled]


class FoundAgents(msgspec.Struct, frozen=True):
    """Agents by the names of their files, those they hide, and what is wrong with files."""

    agents: dict[str, AgentDefinition] = {}
    shadowed: tuple[Shadowed, ...] = ()
    problems: tuple[Problem, ...] = ()

    def find(self, name: str) -> AgentDefinition | None:
        """By the name of its file, or a name in it."""
        if name in self.agents:
            return self.agents[name]
        wanted = name.lower()
        for key, agent in self.agents.items():
            if wanted in (key.lower(), agent.alias.lower(), agent.display_name.lower()):
                return agent
        return None
