"""Results that the file tools share: failures, and contents for permission questions."""

from trimtab.contracts.tool import ToolResult
from trimtab.contracts.workspace import PathInfo
from trimtab.tools.text import first_view

MAX_SHOWN = 1_000_000
"""Bytes of a file that a permission question shows."""


def fail(text: str, summary: str | None = None) -> ToolResult:
    return ToolResult(text=text, kind="failure", summary=summary)


def missing(name: str) -> ToolResult:
    return fail(f"Path {name} does not exist. Please provide a valid path.", "Path does not exist")


def refuse_path(name: str, info: PathInfo) -> ToolResult | None:
    """Return a failure if a path is not a usable file, else None."""
    if info.kind == "missing":
        return missing(name)
    if info.kind == "directory":
        return fail(f"{name} is a directory, not a file.", "Path is a directory")
    if info.kind == "other":
        return fail(f"{name} is refused: it is {info.reason}.", f"Refused: {info.reason}")
    return None


def system_failure(name: str, error: OSError) -> ToolResult:
    """Return a failure for an error of the operating system."""
    reason = error.strerror or str(error)
    return fail(f"{name}: {reason}.", reason)


def shown_contents(data: bytes) -> str:
    """Return a file's text for a permission question; "" if it is too large."""
    return first_view(data).shown() if len(data) <= MAX_SHOWN else ""
