"""Assembles the system prompt from sections: a Markdown file each, included if its rule holds."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from trimtab.contracts.run import Mode

CHARACTERS_PER_TOKEN = 4
_FOLDER = os.path.join(os.path.dirname(__file__), "sections")
SMALL_WINDOW = 16_384
"""For windows of at most this many tokens, sections are left out to save room."""
SHARE = 4
"""The system prompt may use one part in this many of a small window."""


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that sections may mention. `limit` is the token limit of a prompt, 0 if unknown."""

    version: str
    cwd: str
    system: str
    listing: tuple[str, ...]
    tools: frozenset[str]
    mode: Mode = "interactive"
    model: str = ""
    limit: int = 0
    windows: bool = False
    features: frozenset[str] = frozenset()
    git_root: str | None = None
    branch: str | None = None
    instructions: tuple[str, ...] = ()
    skills: str = ""
    servers: str = ""
    agent: str = ""


Rule = Callable[[PromptFacts], bool]


class Section(msgspec.Struct, frozen=True):
    """A section of the prompt. `applies` decides whether it is included.

    `public` is the name by which a client can change it, if that is not its own. `priority` orders
    the sections if there is little room: the lowest is dropped first, 0 is never dropped.
    """

    name: str
    applies: Rule = lambda _: True
    public: str = ""
    priority: int = 0


def _has(*tools: str) -> Rule:
    return lambda facts: not facts.tools.isdisjoint(tools)


SECTIONS: tuple[Section, ...] = (
    Section("identity"),
    Section("windows", lambda facts: facts.windows, "identity"),
    Section("agent", lambda facts: bool(facts.agent), "identity"),
    Section("tone", priority=3),
    Section("tool_efficiency", priority=6),
    Section("environment_context", priority=7),
    Section("code_change_rules", _has("edit", "create", "apply_patch"), priority=8),
    Section("guidelines", priority=2),
    Section("safety"),
    Section("tool_instructions", lambda facts: bool(_blocks(facts)), priority=5),
    Section("skills", lambda facts: bool(facts.skills), "tool_instructions", priority=4),
    Section("mcp_servers", lambda facts: bool(facts.servers), "tool_instructions", priority=4),
    Section("custom_instructions", lambda facts: bool(facts.instructions), priority=9),
    Section("plan_mode", lambda facts: facts.mode == "plan", "runtime_instructions"),
    Section("task_completion", lambda facts: facts.mode == "autopilot", "runtime_instructions"),
    Section(
        "validation", lambda facts: facts.mode == "autopilot", "runtime_instructions", priority=1
    ),
    Section("last_instructions", priority=1),
)
"""All sections, in their order in the prompt."""
FRAGMENTS: Mapping[str, Rule] = {
    "code_scanning": lambda facts: "CODE_SCANNING" in facts.features,
    "self_documentation": _has("fetch_copilot_cli_documentation"),
    "using_sql_tool": _has("sql"),
    "todo_tracking": _has("sql"),
    "reporting_progress": _has("report_intent"),
    "custom_agent_work": _has("task"),
}
"""Texts that sections include with a line `{{>name}}`, and the rule for including each."""
TOOL_BLOCKS = (
    *("bash", "store_memory", "edit", "grep", "glob", "task", "semantic_code_search"),
    *("ask_user", "fetch_copilot_cli_documentation"),
)
"""Tools with a text about their use, in the order of those texts."""
FAMILIES = {
    "gpt": ("gpt-", "codex", *(f"o{digit}-" for digit in range(10))),
    "claude": ("claude",),
    "gemini": ("gemini",),
}
"""Families of models, and how the names of their models begin, with a hyphen at the end."""
VARIANTS = frozenset(("tool_efficiency",))
"""Sections that have a text for each family, in `NAME.FAMILY.md`."""


class RenderedSection(msgspec.Struct, frozen=True):
    """A section with its text; `name` is its public name."""

    name: str
    text: str
    section: str
    priority: int = 0


class Assembled(msgspec.Struct, frozen=True):
    """The sections of a prompt in order, and the names of those that did not fit."""

    sections: tuple[RenderedSection, ...]
    left_out: tuple[str, ...] = ()


def assemble(facts: PromptFacts, only: Collection[str] = ()) -> Assembled:
    """Render the sections that apply and fit; `only` restricts them to some names."""
    values = {
        "version": facts.version,
        "cwd": facts.cwd,
        "system": facts.system,
        "listing": "\n".join(facts.listing) or "(empty)",
        "git": f"Git root: {facts.git_root}, branch: {facts.branch}"
        if facts.git_root
        else "No git.",
        "tools": "\n".join(_read(f"tools/{name}") for name in _blocks(facts)),
        "instructions": "\n\n".join(facts.instructions),
        "skills": facts.skills,
        "servers": facts.servers,
        "agent": facts.agent,
    }
    family = family_of(facts.model)
    rendered = [
        RenderedSection(
            section.public or section.name,
            _fill(_include(_read(section.name, family), facts), values),
            section.name,
            section.priority,
        )
        for section in SECTIONS
        if section.applies(facts) and (not only or section.name in only)
    ]
    return _fit(rendered, facts.limit)


def family_of(model: str) -> str:
    """Return the family of a model, judged by its name; empty if unknown."""
    name = model.lower().rsplit("/", 1)[-1]
    return next(
        (family for family, starts in FAMILIES.items() if f"{name}-".startswith(starts)), ""
    )


def read_text(name: str) -> str:
    """Return a prompt text outside the system prompt, such as the autopilot nudge."""
    return _read(name)


def _fit(sections: list[RenderedSection], limit: int) -> Assembled:
    """Keep the sections of the highest priority that fit; skip those that are too long."""
    room = limit * CHARACTERS_PER_TOKEN // SHARE
    if not 0 < limit <= SMALL_WINDOW or _length(sections) <= room:
        return Assembled(tuple(sections))
    kept = {section.section for section in sections if not section.priority}
    room -= _length(section for section in sections if not section.priority)
    for section in sorted(sections, key=lambda section: section.priority, reverse=True):
        if section.priority and len(section.text) <= room:
            room -= len(section.text)
            kept.add(section.section)
    return Assembled(
        tuple(section for section in sections if section.section in kept),
        tuple(section.section for section in sections if section.section not in kept),
    )


def _length(sections: Iterable[RenderedSection]) -> int:
    return sum(len(section.text) for section in sections)


def _blocks(facts: PromptFacts) -> list[str]:
    return [name for name in TOOL_BLOCKS if name in facts.tools]


def _read(name: str, family: str = "") -> str:
    suffix = f".{family}" if family and name in VARIANTS else ""
    with open(os.path.join(_FOLDER, f"{name}{suffix}.md"), encoding="utf-8") as file:
        return file.read().strip()


def _include(text: str, facts: PromptFacts) -> str:
    def include(match: re.Match[str]) -> str:
        return _read(match[1]) + "\n" if FRAGMENTS[match[1]](facts) else ""

    return re.sub(r"\{\{>(\w+)\}\}\n", include, text)


def _fill(text: str, values: dict[str, str]) -> str:
    """Replace `{{name}}` in a single pass, so that placeholders within values stay as they are."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values.get(match[1], match[0]), text)
