"""Applies a client's changes to the sections of the system prompt."""

from collections.abc import Mapping

from trimtab.contracts.errors import ConfigurationError
from trimtab.contracts.options import SectionChange

NAMES = (
    "preamble",
    "identity",
    "tone",
    "tool_efficiency",
    "environment_context",
    "code_change_rules",
    "guidelines",
    "safety",
    "tool_instructions",
    "custom_instructions",
    "runtime_instructions",
    "last_instructions",
)
"""The sections a client can change, in their order in the prompt."""


def change_sections(
    sections: Mapping[str, str], changes: Mapping[str, SectionChange]
) -> dict[str, str]:
    """Apply the changes that need no callback. Raises `ConfigurationError` for an unknown name."""
    unknown = [name for name in changes if name not in NAMES]
    if unknown:
        raise ConfigurationError(
            f"The system message has no section {unknown[0]!r}; use one of {', '.join(NAMES)}."
        )
    changed = {}
    for name in NAMES:
        text, change = sections.get(name, ""), changes.get(name)
        if change is not None:
            text = _apply(change, text)
        if text:
            changed[name] = text
    return changed


def join(sections: Mapping[str, str], content: str = "") -> str:
    """Join the sections and additional content into one prompt."""
    return "\n\n".join(filter(None, (*sections.values(), content)))


def _apply(change: SectionChange, text: str) -> str:
    match change.action:
        case "replace":
            return change.content
        case "remove":
            return ""
        case "append":
            return "\n".join(filter(None, (text, change.content)))
        case "prepend":
            return "\n".join(filter(None, (change.content, text)))
        case _:
            return text
