"""What a sandboxed command may touch: paths it may write, may only read, may not even read."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.protected import NAMES, TAILS

if TYPE_CHECKING:
    from trimtab.workspace.sandbox.hosts import HostList

START_UP = ("bash", "z", "prof", "log", "ksh", "csh", "tcsh", "input", "x", "pam", "ssh", "netrc")
"""How the names of files begin, behind the dot, that count in a home directory only."""
GIT_PARTS = ("hooks", "config")
"""What in a repository's own folder makes git run programs."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Absolute paths. Everything else can be read and not written.

    `own` are folders of the agent, not written even where they lie in something writable, and
    `session` what the session keeps in them for commands. `temp` empty means an own, empty one.
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
    """Hosts that may be reached, where the network is not free; None: none at all."""
    unasked: bool = False
    """Whether commands in it need no permission."""

    @property
    def all_writable(self) -> tuple[str, ...]:
        temp = (self.temp,) if self.temp else ()
        return (*self.roots, *self.writable, *temp, *self.session)


class GitFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where a repository keeps its data: of a linked worktree, also that of the main one."""

    folder: str
    common: str


def find_git(start: str) -> GitFolder | None:
    """The repository that a directory belongs to."""
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
    """The protected names directly in a folder, whether they exist or not; not `.git`."""
    at_home = root == os.path.realpath(os.path.expanduser("~"))
    named = [
        os.path.join(root, name)
        for name in NAMES
        if name != ".git" and (at_home or not name[1:].startswith(START_UP))
    ]
    tails = [tail for tail in TAILS if tail[0] == ".github" or (at_home and tail[0] == ".config")]
    return sorted(named + [os.path.join(root, *tail) for tail in tails])


def existing(paths: Iterable[str]) -> list[str]:
    """Those that are there, with links followed, each once."""
    return list(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))
