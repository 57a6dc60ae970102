"""Files in git's objects, where no fence can hide them: git prints what it has recorded."""

import os
import re
from collections.abc import Iterator

from trimtab.permissions.shell.verdict.analysis import Analysis, Found

MAX_INDEX = 64 * 1024 * 1024
PRINTING = frozenset(
    (
        *("archive", "blame", "cat-file", "checkout-index", "diff", "diff-files", "diff-index"),
        *("diff-tree", "difftool", "fast-export", "format-patch", "grep", "log", "range-diff"),
        *("show", "stash", "whatchanged", "annotate", "bundle", "citool", "clone", "diff-pairs"),
        *("gui", "http-backend", "instaweb", "merge-file", "merge-tree", "pack-objects", "rerere"),
        *("request-pull", "unpack-file", "upload-pack", "worktree"),
    )
)
"""The commands of git that print what is in files, or write it to other files."""
PATCHING = frozenset(
    (
        *("add", "am", "bisect", "checkout", "commit", "rebase", "reflog", "reset", "restore"),
        *("status", "submodule"),
    )
)
"""Those that do so with an option for it."""
_PATCH = re.compile(r"-[a-zA-Z]*[ipv][a-zA-Z]*|--(?:pa|verb|int|show-c)\S*")
_BROWSERS = frozenset(("gitk", "tig", "lazygit", "gitui"))


def prints_recorded(analysis: Analysis) -> bool:
    """Return True if a command of git may print what is in files."""
    return any(map(_prints, analysis.commands))


def _prints(found: Found) -> bool:
    # Git's own folder has programs for its commands: `git-show`.
    program, subcommand = re.split("[ -]", f"{found.base} ", maxsplit=1)
    if program != "git":
        return found.base in _BROWSERS
    name = subcommand.strip()
    return name in PRINTING or (name in PATCHING and any(map(_PATCH.fullmatch, found.words)))


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
