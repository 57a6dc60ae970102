"""The files in which git keeps what a reset, a commit or a checkout changes besides the tree."""

import os

from trimtab.workspace.walk import Rows, TooLarge, look, walk

NAMES = ("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD")
REFS = ("heads", "tags")
MANY = 5000
OURS = "refs/heads/trimtab/"
"""Branches of other sessions' worktrees: they move while ours works."""


def git_rows(root: str) -> Rows:
    """The rows of these files, for the repository whose top `root` is; none without one.

    Of a linked worktree only its own branch counts: the others belong to others.
    """
    folder = git_folder(root)
    if folder is None:
        return {}
    common = common_folder(folder)
    paths = [os.path.join(folder, name) for name in NAMES]
    if common != folder:
        paths.append(os.path.join(common, own_branch(folder)))
        return known(paths)
    paths += [os.path.join(folder, name) for name in ("packed-refs", "refs/stash")]
    starts = [os.path.join(folder, "refs", kind) for kind in REFS]
    try:
        refs = walk(starts, frozenset(), MANY, float("inf"))
    except TooLarge:
        refs = {}
    ours = os.path.join(folder, OURS)
    return known(paths) | {path: key for path, key in refs.items() if not path.startswith(ours)}


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
