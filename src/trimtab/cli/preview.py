"""Shows what an undo, redo or rewind does to files."""

import os
from collections.abc import Iterator

from trimtab.cli.sessions.text import one_line
from trimtab.contracts.changes import FileState
from trimtab.undo.closed_session import FileHistory, FilePlan, Plan

SHOWN = 400
"""Lines of one file's diff that are printed."""
LARGEST = 1 << 20


def describe(plan: Plan, history: FileHistory, *, diffs: bool) -> Iterator[str]:
    """One line for each file, with its diff if wanted; then what is left alone and why."""
    for one in plan.files:
        name = one_line(os.path.relpath(one.path))
        if one.problem:
            yield f"conflict   {name}: {one_line(one.problem)}"
        if one.is_needed:
            yield f"{_verb(one):<10} {name}{_mode_note(one)}"
            if diffs:
                yield from diff(one, history, name)
    for path in plan.left:
        yield f"left alone {one_line(os.path.relpath(path))} (name it with --file to take it back)"


def diff(one: FilePlan, history: FileHistory, name: str) -> Iterator[str]:
    """The unified diff from what is there now, its hunks numbered for --hunk."""
    import difflib

    if one.current.size > LARGEST or one.target.size > LARGEST:
        yield "  (too large to be shown)"
        return
    old, new = _text(one.current, history), _text(one.target, history)
    if old is None or new is None:
        yield "  (not text)"
        return
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=0)
    hunks = 0
    for count, line in enumerate(lines):
        if count >= SHOWN:
            yield "  …"
            return
        hunks += line.startswith("@@")
        number = f"  (hunk {hunks})" if line.startswith("@@") else ""
        yield f"  {one_line(line)}{number}"


def _text(state: FileState, history: FileHistory) -> list[str] | None:
    if state.kind in ("absent", "directory") or not state.digest:
        return []
    data = history.store.get(state.digest)
    return None if b"\0" in data else data.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _verb(one: FilePlan) -> str:
    if one.target.kind == "absent":
        return "remove"
    return "bring back" if one.current.kind == "absent" else "restore"


def _mode_note(one: FilePlan) -> str:
    before, after = one.current, one.target
    if before.kind == after.kind == "file" and before.mode != after.mode:
        return f" (mode {before.mode:o} to {after.mode:o})"
    return "/" if "directory" in (before.kind, after.kind) else ""
