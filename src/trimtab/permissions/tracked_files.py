"""Files in git's objects, where no fence can hide them: git prints what it has recorded."""

import os
import re
from collections.abc import Iterator

from trimtab.permissions.shell.verdict.analysis import Analysis, Found

MAX_INDEX = 64 * 1024 * 1024
QUIET = frozenset(
    (
        *("add", "am", "apply", "bisect", "branch", "check-attr", "check-ignore", "check-mailmap"),
        *("check-ref-format", "checkout", "cherry", "cherry-pick", "clean", "column", "commit"),
        *("commit-graph", "config", "count-objects", "describe", "fetch", "for-each-ref", "gc"),
        *("help", "ls-files", "ls-remote", "ls-tree", "maintenance", "merge", "merge-base", "mv"),
        *("name-rev", "pack-refs", "prune", "pull", "push", "rebase", "reflog", "remote", "repack"),
        *("reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show-branch"),
        *("show-ref", "sparse-checkout", "stage", "status", "submodule", "switch", "symbolic-ref"),
        *("tag", "update-ref", "var", "verify-commit", "verify-pack", "verify-tag", "version"),
    )
)
"""The commands of git that print no contents, and write them only to files of their own names."""
PATCHING = frozenset(
    (
        *("add", "am", "bisect", "checkout", "commit", "rebase", "reflog", "reset", "restore"),
        *("status", "submodule"),
    )
)
"""Those that print contents with an option for it."""
_PATCH = re.compile(r"-[a-zA-Z]*[ipv][a-zA-Z]*|--(?:pa|verb|int|show-c)\S*")
_BROWSERS = frozenset(("gitk", "tig", "lazygit", "gitui"))


def prints_recorded(analysis: Analysis, cwd: str) -> bool:
    """Return True if a command of git may print what is in files, or write it to other files."""
    if any(map(_prints, analysis.commands)):
        return True
    if not any(found.base.startswith("git ") for found in analysis.commands):
        return False
    # Another work tree or repository has the same files in other places.
    if any(reason.startswith("git") or "GIT_" in reason for reason in analysis.hazards):
        return True
    own = find_root(os.path.realpath(cwd))
    paths = map(os.path.realpath, (*analysis.reads, *analysis.touched))
    return any(find_root(path) != own for path in paths)


def _prints(found: Found) -> bool:
    # Git's own folder has programs for its commands: `git-show`.
    program, subcommand = re.split("[ -]", f"{found.base} ", maxsplit=1)
    if program != "git":
        return found.base in _BROWSERS
    name = subcommand.strip()
    if name == "submodule" and "add" in found.words:
        return True
    if any("%(raw" in word for word in found.words):
        return True
    patches = name in PATCHING and any(map(_PATCH.fullmatch, found.words))
    return bool(name) and (patches or name not in QUIET)


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
