"""Shows what an undo, redo or rewind does to files."""

import os
from collections.abc import Iterator

from trimtab.contracts.changes import FileState
from trimtab.contracts.text import count, neutralise
from trimtab.undo.history import FileHistory, FilePlan, Plan

SHOWN = 400
"""Lines of one file's diff that are printed."""
LARGEST = 1 << 20


def describe_plan(plan: Plan, history: FileHistory, *, diffs: bool) -> Iterator[str]:
    """One line for each file, with its diff if wanted; then what is left alone and why."""
    for file in plan.files:
        name = _show(os.path.relpath(file.path))
        if file.problem:
            yield f"conflict   {name}: {_show(file.problem)}"
        if file.is_needed:
            yield f"{_verb(file):<10} {name}{_mode_note(file)}"
            if diffs:
                yield from _diff(file, history, name)
    for path in plan.left:
        yield f"left alone {_show(os.path.relpath(path))} (name it with --file to take it back)"


def summarise_plan(plan: Plan, *, preview: bool) -> Iterator[str]:
    """Say how much is changed, and what could not be."""
    changed = sum(file.is_needed for file in plan.files)
    paths = count(changed, "path")
    if preview:
        yield f"{plan.action} of turn {plan.turn} would change {paths}; nothing has been changed."
    else:
        yield f"{plan.action} of turn {plan.turn}: {paths} changed."
    if plan.problems:
        conflicts = count(len(plan.problems), "path")
        yield f"{conflicts} with conflicts left as before: settle them by hand, or undo more."


def _diff(file: FilePlan, history: FileHistory, name: str) -> Iterator[str]:
    """The unified diff from what is there now, its hunks numbered for --hunk."""
    import difflib

    if file.current.size > LARGEST or file.target.size > LARGEST:
        yield "  (too large to be shown)"
        return
    old, new = _text(file.current, history), _text(file.target, history)
    if old is None or new is None:
        yield "  (not text)"
        return
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=0)
    hunks = 0
    for shown, line in enumerate(lines):
        if shown >= SHOWN:
            yield "  …"
            return
        hunks += line.startswith("@@")
        number = f"  (hunk {hunks})" if line.startswith("@@") else ""
        yield f"  {_show(line)}{number}"


def _text(state: FileState, history: FileHistory) -> list[str] | None:
    """The lines of a file; None if it is not text. A last line without an end says so."""
    if state.kind in ("absent", "directory") or not state.digest:
        return []
    data = history.store.get(state.digest)
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")
    if text and not text.endswith("\n"):
        lines.append("\\ No newline at end of file")
    return lines


def _show(text: str) -> str:
    """One line as it is: white space counts, and what cannot be seen is shown by its code."""
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
