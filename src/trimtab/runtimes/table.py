"""The table of runtimes by name, each loaded when it is used."""

from importlib import import_module
from typing import cast

from trimtab.contracts.customization import RUNTIME_NAMES
from trimtab.contracts.errors import UsageError
from trimtab.runtimes.contract import AgentRuntime

_CLASSES = ("Claude", "Codex", "CopilotCli", "Opencode", "Gemini", "Pi")
RUNTIMES = dict(zip(RUNTIME_NAMES, _CLASSES, strict=True))
"""Name of the runtime, which is its module, and the class in it."""


def load_runtime(name: str) -> AgentRuntime:
    """Return a runtime. Raises `UsageError` for an unknown name."""
    if name not in RUNTIMES:
        raise UsageError(f"Unknown runtime {name!r}; use one of {', '.join(RUNTIMES)}.")
    found = getattr(import_module(f"trimtab.runtimes.{name}"), RUNTIMES[name])
    return cast(AgentRuntime, found())
