"""Describes tool calls for people: the line of a call, its outcome, its exit code."""

import os
import signal
from typing import Any

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.tool import ToolExecutionComplete
from trimtab.contracts.text import neutralise, show_arguments
from trimtab.host.parts import EditsByOthers, ToolState

MAX_NAMED = 3
"""Files that a line names; more are counted."""


def describe_call(name: str, arguments: Any) -> str:
    """Return a tool call as one line: its name and its most informative arguments."""
    first, *more = show_arguments(arguments).strip().split("\n", 1)
    return f"{name} {first}{' …' if more else ''}".rstrip()


def failure_state(error: JsonObject) -> ToolState:
    """Return the state of an unsuccessful call, by the code of its error."""
    code = str(error.get("code") or "")
    states: dict[str, ToolState] = {
        "denied": "denied",
        "rejected": "rejected",
        "interrupted": "interrupted",
    }
    return states.get(code, "failed")


def find_exit_code(data: ToolExecutionComplete) -> int | None:
    """Return the exit code of the command a call ran, or None if it did not run one to its end."""
    code = (data.shell_execution or {}).get("exitCode")
    if isinstance(code, int):
        return code
    text = str((data.result or {}).get("content") or (data.error or {}).get("message") or "")
    _, found, rest = text.rpartition("<exited with exit code ")
    number = rest.partition(">")[0]
    return int(number) if found and number.lstrip("-").isdigit() else None


def describe_end(code: int) -> str:
    """Return how a command ended that did not succeed; a negative code is a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def describe_edits(part: EditsByOthers) -> str:
    """Return a sentence about the files that others changed."""
    names = [neutralise(os.path.basename(edit.path)) for edit in part.edits[:MAX_NAMED]]
    if (more := part.count - len(names)) > 0:
        names.append(f"{more} more")
    return f"Changed by others meanwhile: {', '.join(names)}"
