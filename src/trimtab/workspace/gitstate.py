"""The files in which git keeps what a reset, a commit or a checkout changes besides the tree."""

import os

from trimtab.workspace.walk import Rows, TooLarge, look, walk

NAMES = ("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "packed-refs")
REFS = 5000
OURS = "refs/trimtab"


def git_rows(root: str) -> Rows:
    """The rows of these files, for the repository whose top `root` is; none without one."""
    folder = git_folder(root)
    if folder is None:
        return {}
    common = common_folder(folder)
    rows: Rows = {}
    for place in {folder, common}:
        for name in NAMES:
            path = os.path.join(place, name)
            if (key := look(path)) is not None:
                rows[path] = key
    try:
        refs = walk([os.path.join(common, "refs")], frozenset(), REFS, float("inf"))
    except TooLarge:
        return rows
    ours = os.path.join(common, OURS)
    rows |= {path: key for path, key in refs.items() if not path.startswith(ours)}
    return rows


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
