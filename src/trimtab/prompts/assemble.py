"""The system prompt, assembled from sections: one Markdown file each, shown when its rule holds."""

import os
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


class Section(msgspec.Struct, frozen=True):
    """A named part of the prompt. `shown` decides whether it appears at all."""

    name: str
    shown: Callable[[PromptFacts], bool] = lambda _: True


SECTIONS: tuple[Section, ...] = (
    Section("identity"),
    Section("tone"),
    Section("tool_efficiency"),
    Section("environment_context"),
    Section("code_change_rules", lambda facts: bool(facts.tools & {"edit", "create", "bash"})),
    Section("guidelines"),
    Section("safety"),
    Section("tool_instructions", lambda facts: "bash" in facts.tools),
    Section("plan_mode", lambda facts: facts.mode == "plan"),
    Section("task_completion", lambda facts: facts.mode == "autopilot"),
    Section("custom_instructions", lambda facts: bool(facts.instructions)),
    Section("last_instructions"),
)
"""In the order they appear."""


def assemble(facts: PromptFacts) -> str:
    """The whole system prompt."""
    values = {
        "version": facts.version,
        "cwd": facts.cwd,
        "system": facts.system,
        "listing": "\n".join(facts.listing) or "(empty)",
        "git": f"Git root: {facts.git_root}, branch: {facts.branch}"
        if facts.git_root
        else "No git.",
        "instructions": "\n\n".join(facts.instructions),
    }
    parts = [_fill(_read(section.name), values) for section in SECTIONS if section.shown(facts)]
    return "\n\n".join(parts)


def read_text(name: str) -> str:
    """A prompt text that is no section of the system prompt, such as the autopilot nudge."""
    return _read(name)


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name + ".md"), encoding="utf-8") as file:
        return file.read().strip()


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text
