"""Files in git's objects, where no fence can hide them: git prints what it has recorded."""

import os
from collections.abc import Iterator

from trimtab.permissions.shell.verdict.analysis import Analysis

MAX_INDEX = 64 * 1024 * 1024
PRINTING = frozenset(
    (
        *("archive", "blame", "cat-file", "checkout-index", "diff", "diff-files", "diff-index"),
        *("diff-tree", "difftool", "fast-export", "format-patch", "grep", "log", "range-diff"),
        *("show", "stash", "whatchanged", "annotate", "bundle"),
    )
)
"""The commands of git that print what is in files."""


def prints_recorded(analysis: Analysis) -> bool:
    """Return True if a command of git may print what is in files."""
    return any(
        found.base.startswith("git ") and found.base[4:] in PRINTING for found in analysis.commands
    )


def is_tracked(path: str) -> bool:
    """Return True if the index of a repository has a file; files of the past only are not found."""
    folder = find_root(path)
    if folder is None:
        return False
    try:
        with open(os.path.join(_find_git(folder), "index"), "rb") as file:
            index = file.read(MAX_INDEX)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    # From version 4 on paths are shortened.
    return index[4:8] == b"\0\0\0\4" or os.fsencode(os.path.relpath(path, folder)) in index


def find_recorded(analysis: Analysis, cwd: str) -> Iterator[str]:
    """Return the files that commands of git name as they are in a commit: `HEAD:path`."""
    for found in analysis.commands:
        for word in found.words if found.base.startswith("git ") else ():
            _, colon, path = word.partition(":")
            if colon and path:
                yield os.path.join(cwd, path)
                if (root := find_root(cwd)) is not None:
                    yield os.path.join(root, path)


def find_root(folder: str) -> str | None:
    """Return the repository around a path, or None."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _find_git(folder: str) -> str:
    """Return the folder of a repository's data; a worktree has a file that names it."""
    marker = os.path.join(folder, ".git")
    if os.path.isdir(marker):
        return marker
    with open(marker, encoding="utf-8", errors="surrogateescape") as file:
        return os.path.join(folder, file.readline(4096).removeprefix("gitdir:").strip())
