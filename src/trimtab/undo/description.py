"""Describes in text what an undo, redo or rewind does to files."""

import difflib
import os
from collections.abc import Iterator

from trimtab.contracts.changes import FileState
from trimtab.contracts.text import count, neutralise
from trimtab.undo.history import FileHistory, FilePlan, Plan

_MAX_DIFF_LINES = 400
_MAX_DIFF_BYTES = 1 << 20
"""Larger files are listed without a diff."""


def describe_plan(plan: Plan, history: FileHistory, *, diffs: bool) -> Iterator[str]:
    """Yield a line for each file, followed by its diff if asked for, then the skipped paths."""
    for file in plan.files:
        name = _show(os.path.relpath(file.path))
        if file.problem:
            yield f"conflict   {name}: {_show(file.problem)}"
        if file.is_needed:
            yield f"{_verb(file):<10} {name}{_mode_note(file)}"
            if diffs:
                yield from _diff(file, history, name)
    for path in plan.left:
        yield f"left alone {_show(os.path.relpath(path))} (name it with --file to include it)"


def summarise_plan(plan: Plan, *, preview: bool) -> Iterator[str]:
    """Yield the number of changed paths and of conflicts."""
    changed = sum(file.is_needed for file in plan.files)
    paths = count(changed, "path")
    if preview:
        yield f"{plan.action} of turn {plan.turn} would change {paths}; nothing has been changed."
    else:
        yield f"{plan.action} of turn {plan.turn}: {paths} changed."
    if plan.problems:
        conflicts = count(len(plan.problems), "path")
        yield f"{conflicts} with conflicts left unchanged: resolve them by hand, or undo more."


def _diff(file: FilePlan, history: FileHistory, name: str) -> Iterator[str]:
    """Yield the unified diff from the current content, with its hunks numbered for --hunk."""
    if file.current.size > _MAX_DIFF_BYTES or file.target.size > _MAX_DIFF_BYTES:
        yield "  (too large to show)"
        return
    old, new = _text(file.current, history), _text(file.target, history)
    if old is None or new is None:
        yield "  (not text)"
        return
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=0)
    hunks = 0
    for index, line in enumerate(lines):
        if index >= _MAX_DIFF_LINES:
            yield "  …"
            return
        hunks += line.startswith("@@")
        number = f"  (hunk {hunks})" if line.startswith("@@") else ""
        yield f"  {_show(line)}{number}"


def _text(state: FileState, history: FileHistory) -> list[str] | None:
    """Return the lines of a file as a diff shows them; None if it is not text."""
    data = history.store.get(state.digest) if state.digest else b""
    if not data:
        return []
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")
    if not text.endswith("\n"):
        lines.append("\\ No newline at end of file")
    return lines


def _show(text: str) -> str:
    """Return text on one line, white space kept and invisible characters as escapes."""
    return neutralise(text, "approval").replace("\n", "⏎")


def _verb(file: FilePlan) -> str:
    if file.target.kind == "absent":
        return "remove"
    return "bring back" if file.current.kind == "absent" else "restore"


def _mode_note(file: FilePlan) -> str:
    before, after = file.current, file.target
    if before.kind == after.kind == "file" and before.mode != after.mode:
        return f" (mode {before.mode:o} to {after.mode:o})"
    return "/" if "directory" in (before.kind, after.kind) else ""
