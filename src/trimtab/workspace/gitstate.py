"""The files in which git keeps what a reset, a commit or a checkout changes besides the tree."""

import os
from collections.abc import Iterable

from trimtab.workspace.walk import Rows, TooLarge, look, walk

NAMES = ("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "config", "packed-refs")
OBJECTS = "objects"
SKIPPED = frozenset((OBJECTS, "lfs", "worktrees"))
"""Objects are kept by other means; worktrees belong to others, and move while ours works."""
PASSING = ("FETCH_HEAD", "index.lock", "gc.pid", "gc.log")
MANY = 5000
OURS = ("refs/trimtab/", "refs/heads/trimtab/", "logs/refs/heads/trimtab/", "trimtab-index-")
"""Refs of sessions, this one and others that move while it works."""


class Repositories:
    """What is known of the repositories in and around a folder."""

    def __init__(self, root: str, nested: Iterable[str]) -> None:
        """`root` is the top of a checkout, if it is one; `nested` are git folders below it."""
        self.rows: Rows = {}
        self.objects: list[str] = []
        """The folders of the objects of those that are repositories of their own."""
        top = git_folder(root)
        if top is not None and top != os.path.join(root, ".git"):
            self._add_linked(top)
        for folder in nested:
            self._add(folder)

    def _add(self, folder: str) -> None:
        if (key := look(folder)) is None:
            return
        skipped: list[str] = []
        try:
            found = walk([folder], SKIPPED, MANY, float("inf"), skipped)
        except TooLarge:
            found = known([os.path.join(folder, name) for name in NAMES])
            skipped = [os.path.join(folder, OBJECTS)]
        start = len(folder) + 1
        self.rows[folder] = key
        self.rows |= {
            path: key
            for path, key in found.items()
            if path[start:] not in PASSING and not path.startswith(OURS, start)
        }
        self.objects += [path for path in skipped if os.path.basename(path) == OBJECTS]

    def _add_linked(self, folder: str) -> None:
        """Of a linked worktree only its own branch counts: the others belong to others."""
        paths = [os.path.join(folder, name) for name in NAMES]
        common = common_folder(folder)
        if common != folder:
            paths.append(os.path.join(common, own_branch(folder)))
        self.rows |= known(paths)


def known(paths: list[str]) -> Rows:
    keys = ((path, look(path)) for path in paths)
    return {path: key for path, key in keys if key is not None}


def own_branch(folder: str) -> str:
    """The ref that is checked out; a name that is no file when it is none."""
    try:
        with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="replace") as file:
            return file.read(4096).removeprefix("ref:").strip()
    except OSError:
        return "HEAD"


def git_folder(root: str) -> str | None:
    """The git directory of a checkout: `.git`, or what the file of this name points to."""
    marker = os.path.join(root, ".git")
    if os.path.isdir(marker):
        return marker
    try:
        with open(marker, encoding="utf-8", errors="surrogateescape") as file:
            line = file.read(4096).strip()
    except OSError:
        return None
    target = line.removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(root, target)) if target != line else None


def common_folder(folder: str) -> str:
    """Where refs are: the main repository's git directory, also for a linked worktree."""
    try:
        with open(os.path.join(folder, "commondir"), encoding="utf-8") as file:
            return os.path.normpath(os.path.join(folder, file.read(4096).strip()))
    except OSError:
        return folder


def is_git_state(path: str) -> bool:
    """Whether a path is inside a git directory, where nothing is ever merged."""
    return ".git" in path.split("/")
