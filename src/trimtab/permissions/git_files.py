"""Files as git knows them: which a repository tracks, and which a command names in a commit."""

import os
from collections.abc import Iterator

from trimtab.permissions.shell.analysis import Analysis

LARGEST_INDEX = 64 * 1024 * 1024


def is_tracked(path: str) -> bool:
    """Whether git knows a file here. What only its past knows is not found."""
    folder = _find_root(path)
    if folder is None:
        return False
    try:
        with open(os.path.join(_find_git(folder), "index"), "rb") as file:
            index = file.read(LARGEST_INDEX)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    # From version 4 on paths are shortened.
    return index[4:8] == b"\0\0\0\4" or os.fsencode(os.path.relpath(path, folder)) in index


def find_blobs(analysis: Analysis, cwd: str) -> Iterator[str]:
    """Files that commands of git name as they are in a commit: `HEAD:path`."""
    for found in analysis.commands:
        for word in found.words if found.base.startswith("git ") else ():
            _, colon, path = word.partition(":")
            if colon and path:
                yield os.path.join(cwd, path)
                if (root := _find_root(cwd)) is not None:
                    yield os.path.join(root, path)


def _find_root(folder: str) -> str | None:
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _find_git(folder: str) -> str:
    """Where the data of a repository are; of a worktree a file says it."""
    marker = os.path.join(folder, ".git")
    if os.path.isdir(marker):
        return marker
    with open(marker, encoding="utf-8", errors="surrogateescape") as file:
        return os.path.join(folder, file.readline(4096).removeprefix("gitdir:").strip())
