"""The system prompt, assembled from sections: one Markdown file each, shown when its rule holds."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from trimtab.contracts.run import Mode

_FOLDER = os.path.join(os.path.dirname(__file__), "sections")
SMALL_WINDOW = 16_384
"""Prompts of so many tokens or fewer are small: sections are left out to fit a share of them."""
SHARE = 4
"""A system prompt may take this part of a small window. A token is four characters."""


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What sections may speak of. `limit` is how many tokens a prompt may have, 0 if unknown."""

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
    """A part of the prompt. `shown` decides whether it appears at all.

    `public` is the name under which a caller can change it, where that is not its own. `keep` says
    how long it stays where there is little room: the lowest goes first, 0 never goes.
    """

    name: str
    shown: Rule = lambda _: True
    public: str = ""
    keep: int = 0


def _has(*tools: str) -> Rule:
    return lambda facts: not facts.tools.isdisjoint(tools)


SECTIONS: tuple[Section, ...] = (
    Section("identity"),
    Section("windows", lambda facts: facts.windows, "identity"),
    Section("agent", lambda facts: bool(facts.agent), "identity"),
    Section("tone", keep=3),
    Section("tool_efficiency", keep=6),
    Section("environment_context", keep=7),
    Section("code_change_rules", _has("edit", "create", "apply_patch"), keep=8),
    Section("guidelines", keep=2),
    Section("safety"),
    Section("tool_instructions", lambda facts: bool(_blocks(facts)), keep=5),
    Section("skills", lambda facts: bool(facts.skills), "tool_instructions", keep=4),
    Section("mcp_servers", lambda facts: bool(facts.servers), "tool_instructions", keep=4),
    Section("custom_instructions", lambda facts: bool(facts.instructions), keep=9),
    Section("plan_mode", lambda facts: facts.mode == "plan", "runtime_instructions"),
    Section("task_completion", lambda facts: facts.mode == "autopilot", "runtime_instructions"),
    Section("validation", lambda facts: facts.mode == "autopilot", "runtime_instructions", keep=1),
    Section("last_instructions", keep=1),
)
"""In the order they appear."""
FRAGMENTS: Mapping[str, Rule] = {
    "code_scanning": lambda facts: "CODE_SCANNING" in facts.features,
    "self_documentation": _has("fetch_copilot_cli_documentation"),
    "using_sql_tool": _has("sql"),
    "todo_tracking": _has("sql"),
    "reporting_progress": _has("report_intent"),
    "custom_agent_work": _has("task"),
}
"""Texts that sections include with `{{>name}}`, each on a line of its own, when a rule holds."""
TOOL_BLOCKS = (
    *("bash", "store_memory", "edit", "grep", "glob", "task", "semantic_code_search"),
    *("ask_user", "fetch_copilot_cli_documentation"),
)
"""Tools with a text about their use, in the order of the texts."""
FAMILIES = (
    ("gpt", r"gpt-|o\d(-|$)|codex"),
    ("claude", r"claude"),
    ("gemini", r"gemini"),
)
"""Families of models, and how the names of their models begin."""
VARIANTS = frozenset(("tool_efficiency",))
"""Sections of which a family has a text of its own, in `NAME.FAMILY.md`."""


class Shown(msgspec.Struct, frozen=True):
    """A section with its text; `name` is what a caller knows it by."""

    name: str
    text: str
    section: str
    keep: int = 0


class Assembled(msgspec.Struct, frozen=True):
    """The sections of a prompt in their order, and the names of those there was no room for."""

    sections: tuple[Shown, ...]
    left_out: tuple[str, ...] = ()


def assemble(facts: PromptFacts, only: Collection[str] = ()) -> Assembled:
    """The sections that apply, or those of them in `only`, as far as there is room for them."""
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
    shown = [
        Shown(
            section.public or section.name,
            _fill(_include(_read(section.name, family), facts), values),
            section.name,
            section.keep,
        )
        for section in SECTIONS
        if section.shown(facts) and (not only or section.name in only)
    ]
    return _fit(shown, facts.limit)


def family_of(model: str) -> str:
    """The family a model belongs to; empty for one whose name says nothing."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((family for family, start in FAMILIES if re.match(start, name)), "")


def read_text(name: str) -> str:
    """A prompt text that is no section of the system prompt, such as the autopilot nudge."""
    return _read(name)


def _fit(shown: list[Shown], limit: int) -> Assembled:
    """Sections worth keeping most come first; one that is too long leaves room for the others."""
    room = limit * 4 // SHARE
    if not 0 < limit <= SMALL_WINDOW or _length(shown) <= room:
        return Assembled(tuple(shown))
    kept = {one.section for one in shown if not one.keep}
    room -= _length(one for one in shown if not one.keep)
    for one in sorted(shown, key=lambda one: one.keep, reverse=True):
        if one.keep and len(one.text) <= room:
            room -= len(one.text)
            kept.add(one.section)
    return Assembled(
        tuple(one for one in shown if one.section in kept),
        tuple(one.section for one in shown if one.section not in kept),
    )


def _length(shown: Iterable[Shown]) -> int:
    return sum(len(one.text) for one in shown)


def _blocks(facts: PromptFacts) -> list[str]:
    return [name for name in TOOL_BLOCKS if name in facts.tools]


def _read(name: str, family: str = "") -> str:
    suffix = f".{family}" if family and name in VARIANTS else ""
    with open(os.path.join(_FOLDER, f"{name}{suffix}.md"), encoding="utf-8") as file:
        return file.read().strip()


def _include(text: str, facts: PromptFacts) -> str:
    def include(mark: re.Match[str]) -> str:
        return _read(mark[1]) + "\n" if FRAGMENTS[mark[1]](facts) else ""

    return re.sub(r"\{\{>(\w+)\}\}\n", include, text)


def _fill(text: str, values: dict[str, str]) -> str:
    """In one pass: what is filled in may itself hold such marks, and they mean nothing."""
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: values.get(mark[1], mark[0]), text)
