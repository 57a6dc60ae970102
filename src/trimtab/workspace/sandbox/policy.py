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
    """Return the repository that a directory belongs to."""
    folder = os.path.realpath(start)
    while not os.path.lexists(marker := os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    if os.path.isdir(marker):
        marker = os.path.realpath(marker)
        return GitFolder(folder=marker, common=marker)
    own = os.path.normpath(os.path.join(folder, read_line(marker).removeprefix("gitdir:").strip()))
    if not os.path.isdir(own):
        return None
    common = os.path.join(own, read_line(os.path.join(own, "commondir")) or ".")
    return GitFolder(folder=own, common=os.path.realpath(common))


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
