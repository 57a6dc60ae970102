"""The policy of a sandbox: paths that are writable, read-only or denied."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.protected import NAMES, TAILS

if TYPE_CHECKING:
    from trimtab.workspace.sandbox.hosts import HostList

START_UP = ("bash", "z", "prof", "log", "ksh", "csh", "tcsh", "input", "x", "pam", "ssh", "netrc")
"""The names, without the dot, that are protected only in a home directory."""
GIT_PARTS = ("hooks", "config")
"""Entries of a `.git` folder that make git run programs."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Absolute paths. Everything else can be read, but not written.

    `own` are the agent's folders, read-only even inside a writable folder; `session` are the
    session's files in them that commands may write. An empty `temp` means a private temp folder.
    """

    roots: tuple[str, ...]
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    temp: str = ""
    network: bool = False
    hosts: "HostList | None" = None
    """Hosts that may be reached if the network is restricted; None means none."""
    unasked: bool = False
    """True if sandboxed commands need no permission."""
    variables: Mapping[str, str] = {}
    """Variables of the environment that differ inside."""

    @property
    def all_writable(self) -> tuple[str, ...]:
        temp = (self.temp,) if self.temp else ()
        return (*self.roots, *self.writable, *temp, *self.session)


class GitFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Return the data folders of a repository, for a worktree also the main repository's."""

    folder: str
    common: str


def find_git(start: str) -> GitFolder | None:
    """Return the repository that a directory belongs to.

    A `.git` that leads elsewhere counts only if what is there leads back: commands may read that
    folder, and write it in the sandbox, so it must not be one that a foreign workspace names.
    """
    folder = os.path.realpath(start)
    while not os.path.lexists(marker := os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    if os.path.isdir(marker):
        own = os.path.realpath(marker)
        found = GitFolder(folder=own, common=own)
    else:
        named = read_line(marker).removeprefix("gitdir:").strip()
        own = os.path.realpath(os.path.join(folder, named))
        common = os.path.join(own, read_line(os.path.join(own, "commondir")) or ".")
        found = GitFolder(folder=own, common=os.path.realpath(common))
    return found if os.path.isdir(own) and leads_back(found, folder) else None


def leads_back(git: GitFolder, folder: str) -> bool:
    """Return True if a repository is inside the folder that names it, or names the folder itself.

    One that was made with `--separate-git-dir` names no folder; it has a name of its own.
    """
    if git.common != git.folder:
        back = os.path.join(git.folder, read_line(os.path.join(git.folder, "gitdir")))
        is_worktree = os.path.dirname(git.folder) == os.path.join(git.common, "worktrees")
        return is_worktree and os.path.realpath(back) == os.path.join(folder, ".git")
    if git.folder.startswith(folder.rstrip("/") + "/"):
        return True
    settings = read_settings(git.folder)
    if worktree := settings.get("worktree", ""):
        return os.path.realpath(os.path.join(git.folder, worktree)) == folder
    return settings.get("bare") == "false" and os.path.basename(git.folder) != ".git"


def read_settings(git: str) -> dict[str, str]:
    """Return the settings of a repository by the last part of their names."""
    try:
        with open(os.path.join(git, "config"), encoding="utf-8", errors="surrogateescape") as file:
            pairs = [line.partition("=") for line in file]
    except OSError:
        return {}
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def find_protected(root: str) -> list[str]:
    """Return the protected paths directly in a folder, existing or not, except `.git`."""
    at_home = root == os.path.realpath(os.path.expanduser("~"))
    named = [
        os.path.join(root, name)
        for name in NAMES
        if name != ".git" and (at_home or not name[1:].startswith(START_UP))
    ]
    tails = [tail for tail in TAILS if tail[0] == ".github" or (at_home and tail[0] == ".config")]
    return sorted(named + [os.path.join(root, *tail) for tail in tails])


def existing(paths: Iterable[str]) -> list[str]:
    """Return the existing paths, resolved, without duplicates."""
    return list(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))
