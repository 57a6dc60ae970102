"""Differences of the workspace: of the session, of the working tree, and of the branch."""

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence

from trimtab.contracts.changes import ABSENT, FileState
from trimtab.contracts.events.envelope import JsonObject
from trimtab.undo.blobs import BlobStore
from trimtab.undo.history import OURS, FileHistory
from trimtab.workspace.git import Git, GitError

MAX_FILES = 500
MAX_TEXT = 1024 * 1024
"""Longer differences are cut off."""
MAIN_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
KINDS = {"A": "added", "D": "deleted", "R": "renamed"}
PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "-M")


def diff_workspace(history: FileHistory, cwd: str, mode: str, options: Sequence[str]) -> JsonObject:
    """Return the changes in a mode; without a repository, those of the session."""
    reply: JsonObject = {"requestedMode": mode, "mode": mode, "isFallback": False}
    git = Git(cwd)
    if mode != "session" and git.attempt("rev-parse", "--is-inside-work-tree") != "true":
        reply |= {"mode": "session", "isFallback": True}
    elif mode == "branch":
        base = next((name for name in MAIN_BRANCHES if _exists(git, name)), None)
        if base is None:
            reply |= {"mode": "unstaged", "isFallback": True}
        else:
            reply["baseBranch"] = base.removeprefix("origin/")
            start = git.attempt("merge-base", "HEAD", base) or base
            return {**reply, "changes": list(diff_tree(git, [start], options))}
    if reply["mode"] == "session":
        return {**reply, "changes": list(diff_session(history))}
    changes = [*diff_tree(git, [], options), *diff_untracked(git)]
    return {**reply, "changes": changes[:MAX_FILES]}


def diff_tree(git: Git, base: Sequence[str], options: Sequence[str]) -> Iterator[JsonObject]:
    """Yield how the working tree differs from the index, or from a commit."""
    try:
        names = git.run("diff", *PLAIN, *options, "--name-status", "-z", *base).split("\0")
        texts = git.run("diff", *PLAIN, *options, *base)
    except GitError:
        return
    pieces = iter(_split(texts))
    fields = iter(names)
    for status in fields:
        if not status:
            return
        path = next(fields)
        old_path = path if status[0] in "RC" else None
        path = next(fields) if old_path is not None else path
        change = _describe(KINDS.get(status[0], "modified"), path, next(pieces, ""))
        yield {**change, "oldPath": old_path} if old_path is not None else change


def diff_untracked(git: Git) -> Iterator[JsonObject]:
    """Yield the files that git does not know."""
    listed = git.attempt("ls-files", "--others", "--exclude-standard", "-z") or ""
    for path in filter(None, listed.split("\0")):
        try:
            with open(os.path.join(git.folder, path), "rb") as file:
                text = file.read(MAX_TEXT + 1).decode("utf-8", "replace")
        except OSError:
            continue
        yield _describe("added", path, _unified(path, "", text))


def diff_session(history: FileHistory) -> Iterator[JsonObject]:
    """Yield the files that the session changed, from before its first change to now."""
    states: dict[str, tuple[FileState, FileState]] = {}
    for recorded in history.recorded():
        for change in recorded.changes if recorded.event.reason in OURS else ():
            before, _ = states.get(change.path, (change.before, ABSENT))
            states[change.path] = before, change.after
    for path, (before, after) in states.items():
        if before == after:
            continue
        kind = "added" if before == ABSENT else "deleted" if after == ABSENT else "modified"
        old, new = _text(history.store, before), _text(history.store, after)
        yield _describe(kind, path, _unified(path, old, new))


def _exists(git: Git, name: str) -> bool:
    return git.attempt("rev-parse", "--verify", "-q", f"{name}^{{commit}}") is not None


def _split(text: str) -> Iterator[str]:
    """Yield the differences of single files."""
    piece: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("diff --git ") and piece:
            yield "".join(piece)
            piece = []
        piece.append(line)
    if piece:
        yield "".join(piece)


def _text(store: BlobStore, state: FileState) -> str:
    if not state.digest:
        return ""
    try:
        return store.get(state.digest).decode("utf-8", "replace")
    except OSError:
        return ""


def _unified(path: str, old: str, new: str) -> str:
    return "".join(_lines(path, old, new))


def _lines(path: str, old: str, new: str) -> Iterable[str]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    return difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")


def _describe(kind: str, path: str, diff: str) -> JsonObject:
    change: JsonObject = {"changeType": kind, "path": path, "diff": diff[:MAX_TEXT]}
    return {**change, "isTruncated": True} if len(diff) > MAX_TEXT else change
