"""How hard a model should think, in the words the model has for it."""

from collections.abc import Sequence
from typing import Any

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def map_effort(effort: str | None, levels: Sequence[str]) -> str | None:
    """`effort` as the model knows it. `levels` are the model's own; none means they are unknown.

    Only `max` is mapped, to the highest level there is: it asks for exactly that. Everything else
    is passed on as given, so that a service can say itself that it does not know it.
    """
    if effort != "max" or not levels or "max" in levels:
        return effort
    known = [level for level in LEVELS if level in levels]
    return known[-1] if known else effort


def effort_schema(levels: Sequence[str]) -> dict[str, Any] | None:
    """The configuration schema of a model's effort, or None where it cannot be chosen."""
    if not levels:
        return None
    return {
        "type": "object",
        "properties": {"reasoningEffort": {"type": "string", "enum": list(levels)}},
    }
