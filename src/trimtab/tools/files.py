"""What the file tools say alike: refusals, failures, contents shown to a person."""

from trimtab.contracts.tool import ToolResult
from trimtab.contracts.workspace import PathInfo
from trimtab.tools.text import first_view

SHOWN = 1_000_000


def fail(text: str, summary: str | None = None) -> ToolResult:
    return ToolResult(text=text, kind="failure", summary=summary)


def missing(name: str) -> ToolResult:
    return fail(f"Path {name} does not exist. Please provide a valid path.", "Path does not exist")


def refuse_path(name: str, info: PathInfo) -> ToolResult | None:
    """Why a path cannot be worked on as a file, or None if it can."""
    if info.kind == "missing":
        return missing(name)
    if info.kind == "directory":
        return fail(f"{name} is a directory, not a file.", "Path is a directory")
    if info.kind == "other":
        return fail(f"{name} is refused: it is {info.reason}.", f"Refused: {info.reason}")
    return None


def system_failure(name: str, error: OSError) -> ToolResult:
    """What the operating system would not do."""
    reason = error.strerror or str(error)
    return fail(f"{name}: {reason}.", reason)


def shown_contents(data: bytes) -> str:
    """A file's text for a permission question; nothing when it is too large to be read there."""
    return first_view(data).shown() if len(data) <= SHOWN else ""
