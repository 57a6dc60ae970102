"""Maps the requested reasoning effort to the levels of a model."""

from collections.abc import Sequence
from typing import Any

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def map_effort(effort: str | None, levels: Sequence[str]) -> str | None:
    """Return the effort to request. `levels` are the model's own, empty if unknown.

    Only `max` is mapped, to the highest level of the model. Other values are passed on unchanged,
    so that the service itself rejects an unknown one.
    """
    if effort != "max" or not levels or "max" in levels:
        return effort
    known = [level for level in LEVELS if level in levels]
    return known[-1] if known else effort


def effort_schema(levels: Sequence[str]) -> dict[str, Any] | None:
    """Return the configuration schema of a model's effort; None if it has no levels."""
    if not levels:
        return None
    return {
        "type": "object",
        "properties": {"reasoningEffort": {"type": "string", "enum": list(levels)}},
    }
