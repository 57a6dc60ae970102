"""The system prompt, assembled from sections: one Markdown file each, shown when its rule holds."""

import os
import re
from collections.abc import Callable

import msgspec

from trimtab.contracts.run import Mode

_FOLDER = os.path.join(os.path.dirname(__file__), "sections")


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What sections may speak of."""

    version: str
    cwd: str
    system: str
    listing: tuple[str, ...]
    tools: frozenset[str]
    mode: Mode = "interactive"
    git_root: str | None = None
    branch: str | None = None
    instructions: tuple[str, ...] = ()
    skills: str = ""
    agent: str = ""


class Section(msgspec.Struct, frozen=True):
    """A part of the prompt. `shown` decides whether it appears at all.

    `public` is the name under which a caller can change it, where that is not its own.
    """

    name: str
    shown: Callable[[PromptFacts], bool] = lambda _: True
    public: str = ""


SECTIONS: tuple[Section, ...] = (
    Section("identity"),
    Section("agent", lambda facts: bool(facts.agent), "identity"),
    Section("tone"),
    Section("tool_efficiency"),
    Section("environment_context"),
    Section("code_change_rules", lambda facts: bool(facts.tools & {"edit", "create", "bash"})),
    Section("guidelines"),
    Section("safety"),
    Section("tool_instructions", lambda facts: "bash" in facts.tools),
    Section("skills", lambda facts: bool(facts.skills), "tool_instructions"),
    Section("custom_instructions", lambda facts: bool(facts.instructions)),
    Section("plan_mode", lambda facts: facts.mode == "plan", "runtime_instructions"),
    Section("task_completion", lambda facts: facts.mode == "autopilot", "runtime_instructions"),
    Section("last_instructions"),
)
"""In the order they appear."""


def assemble(facts: PromptFacts) -> str:
    """The whole system prompt."""
    return "\n\n".join(text for _, text in read_sections(facts))


def read_sections(facts: PromptFacts) -> list[tuple[str, str]]:
    """The texts in the order they appear, each with the name a caller knows it by."""
    values = {
        "version": facts.version,
        "cwd": facts.cwd,
        "system": facts.system,
        "listing": "\n".join(facts.listing) or "(empty)",
        "git": f"Git root: {facts.git_root}, branch: {facts.branch}"
        if facts.git_root
        else "No git.",
        "instructions": "\n\n".join(facts.instructions),
        "skills": facts.skills,
        "agent": facts.agent,
    }
    return [
        (section.public or section.name, _fill(_read(section.name), values))
        for section in SECTIONS
        if section.shown(facts)
    ]


def read_text(name: str) -> str:
    """A prompt text that is no section of the system prompt, such as the autopilot nudge."""
    return _read(name)


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name + ".md"), encoding="utf-8") as file:
        return file.read().strip()


def _fill(text: str, values: dict[str, str]) -> str:
    """In one pass: what is filled in may itself hold such marks, and they mean nothing."""
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: values.get(mark[1], mark[0]), text)
