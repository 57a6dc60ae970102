"""Tables of the files and folders that each convention uses. Nothing is parsed here."""

import os
from collections.abc import Sequence

import msgspec

from trimtab.contracts.customization import Source
from trimtab.customize.places import Places

INSTRUCTION_FILES: tuple[tuple[str, Source], ...] = (
    (".github/copilot-instructions.md", "repository"),
    ("AGENTS.override.md", "codex"),
    ("AGENTS.md", "repository"),
    ("CLAUDE.md", "claude"),
    (".claude/CLAUDE.md", "claude"),
    ("CLAUDE.local.md", "claude"),
    ("GEMINI.md", "gemini"),
    (".cursorrules", "cursor"),
)
"""Instruction files of a folder, in the order in which they are merged."""
USER_INSTRUCTIONS: tuple[tuple[str, Source], ...] = (
    (".codex/AGENTS.md", "codex"),
    (".claude/CLAUDE.md", "claude"),
    (".gemini/GEMINI.md", "gemini"),
)
"""Instruction files of other agents in the home directory."""
RULES: tuple[tuple[str, str, Source], ...] = (
    (".github/instructions", ".instructions.md", "repository"),
    (".claude/rules", ".md", "claude"),
    (".cursor/rules", ".mdc", "cursor"),
)
"""Folders of instruction files that may apply to some paths only."""
PROJECT_SKILLS: tuple[tuple[str, Source], ...] = (
    (".github/skills", "repository"),
    (".agents/skills", "repository"),
    (".claude/skills", "claude"),
    (".codex/skills", "codex"),
    (".gemini/skills", "gemini"),
    (".cursor/skills", "cursor"),
)
PROJECT_AGENTS: tuple[tuple[str, Source], ...] = (
    (".github/agents", "repository"),
    (".claude/agents", "claude"),
    (".codex/agents", "codex"),
    (".gemini/agents", "gemini"),
    (".cursor/agents", "cursor"),
)
COMMANDS: tuple[tuple[str, str, Source], ...] = (
    (".claude/commands", ".md", "claude"),
    (".codex/prompts", ".md", "codex"),
    (".gemini/commands", ".toml", "gemini"),
    (".cursor/commands", ".md", "cursor"),
)
"""Folders of commands, and the suffix of their files."""
NAMING_SETTINGS = (".gemini/settings.json", ".codex/config.toml")
"""Settings files that may name more instruction files."""
USER_SERVERS = (".codex/config.toml", ".gemini/settings.json", ".cursor/mcp.json", ".claude.json")
PROJECT_SERVERS = (
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".mcp.json",
    ".github/mcp.json",
    ".vscode/mcp.json",
)
"""Files that may configure MCP servers."""
INSTRUCTIONS_VARIABLE = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
SKILLS_VARIABLE = "COPILOT_SKILLS_DIRS"


class SkillFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of skills or commands. `origin` is its location, in Copilot's words.

    The files of commands end in `suffix`.
    """

    path: str
    source: Source
    origin: str
    commands: bool = False
    suffix: str = ".md"
    plugin: str = ""


class AgentFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of agents."""

    path: str
    source: Source
    origin: str
    plugin: str = ""


def has_instructions(places: Places, children: bool) -> bool:
    """Return True if an instruction file may exist that is read at the start of a session."""
    if children or INSTRUCTIONS_VARIABLE in places.env:
        return True
    return any(map(os.path.lexists, instruction_places(places)))


def instruction_places(places: Places) -> list[str]:
    """Return the files and folders of instructions that are read at the start, if they exist."""
    config = places.home.config
    candidates = [
        os.path.join(config, "copilot-instructions.md"),
        os.path.join(config, "instructions"),
        os.path.join(places.user, ".claude", "rules"),
        *(os.path.join(places.user, name) for name, _ in USER_INSTRUCTIONS),
        *(os.path.join(places.user, name) for name in NAMING_SETTINGS),
        *(os.path.join(places.root, name) for name in NAMING_SETTINGS),
    ]
    for folder in places.chain:
        candidates += [os.path.join(folder, name) for name, _ in INSTRUCTION_FILES]
        candidates += [os.path.join(folder, name) for name, _, _ in RULES]
    return candidates


def server_paths(places: Places) -> list[str]:
    """Return the files that may configure MCP servers, existing or not."""
    paths = [os.path.join(places.home.config, "mcp-config.json")]
    paths += [os.path.join(places.user, name) for name in USER_SERVERS]
    for folder in dict.fromkeys((places.root, places.cwd)) if places.trusted else ():
        paths += [os.path.join(folder, name) for name in PROJECT_SERVERS]
    return paths


def skill_folders(places: Places) -> list[SkillFolder]:
    """Return the folders of skills; the first ones win."""
    folders: list[SkillFolder] = []
    if places.trusted:
        for folder in places.chain:
            origin = "project" if folder in (places.cwd, places.root) else "inherited"
            folders += [
                SkillFolder(path=os.path.join(folder, name), source=source, origin=origin)
                for name, source in PROJECT_SKILLS
            ]
    personal: tuple[tuple[str, str, Source, str], ...] = (
        (places.home.config, "skills", "user", "personal-copilot"),
        (places.user, ".agents/skills", "user", "personal-agents"),
        (places.user, ".claude/skills", "claude", "custom"),
        (places.user, ".codex/skills", "codex", "custom"),
        (places.user, ".gemini/skills", "gemini", "custom"),
        (places.user, ".cursor/skills", "cursor", "custom"),
    )
    folders += [
        SkillFolder(path=os.path.join(base, name), source=source, origin=origin)
        for base, name, source, origin in personal
    ]
    return folders


def named_folders(
    places: Places, names: Sequence[str], source: Source = "environment"
) -> list[SkillFolder]:
    """Return the folders of skills that a variable, a setting or a client names."""
    return [
        SkillFolder(
            path=os.path.join(places.cwd, places.expand(name)), source=source, origin="custom"
        )
        for name in names
    ]


def named_agent_folders(places: Places, names: Sequence[str]) -> list[AgentFolder]:
    """Return the folders of agents that a client names."""
    return [
        AgentFolder(path=os.path.join(places.cwd, places.expand(name)), source="sdk", origin="user")
        for name in names
    ]


def command_folders(places: Places) -> list[SkillFolder]:
    """Return the folders of commands; the first ones win."""
    project = dict.fromkeys((places.cwd, places.root)) if places.trusted else {}
    return [
        SkillFolder(
            path=os.path.join(folder, name),
            source=source,
            origin="project" if folder in project else "custom",
            commands=True,
            suffix=suffix,
        )
        for folder in dict.fromkeys((*project, places.user))
        for name, suffix, source in COMMANDS
    ]


def agent_folders(places: Places) -> list[AgentFolder]:
    """Return the folders of agents; the first ones win."""
    folders: list[AgentFolder] = []
    if places.trusted:
        for folder in places.chain:
            origin = "project" if folder in (places.cwd, places.root) else "inherited"
            folders += [
                AgentFolder(path=os.path.join(folder, name), source=source, origin=origin)
                for name, source in PROJECT_AGENTS
            ]
    personal: tuple[tuple[str, str, Source], ...] = (
        (places.home.config, "agents", "user"),
        (places.user, ".github/agents", "user"),
        (places.user, ".claude/agents", "claude"),
        (places.user, ".codex/agents", "codex"),
        (places.user, ".gemini/agents", "gemini"),
        (places.user, ".cursor/agents", "cursor"),
    )
    return [
        *folders,
        *(
            AgentFolder(path=os.path.join(base, name), source=source, origin="user")
            for base, name, source in personal
        ),
    ]
