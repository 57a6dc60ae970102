"""Where a session is: directory, repository, operating system; read without starting a program."""

import os
import sys
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from trimtab.config.files import read_regular
from trimtab.contracts.events.envelope import JsonObject

if TYPE_CHECKING:
    from trimtab.checkout.worktrees import Worktree

LISTED = 60
LOOKED_AT = 5000
"""Entries of a directory that are counted."""


class Folder(msgspec.Struct, frozen=True):
    """A folder of the workspace, and the repository around it if there is one."""

    path: str
    git_root: str | None = None


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about where a session works: folders, repository, worktree, trust."""

    cwd: str
    git_root: str | None = None
    branch: str | None = None
    head: str | None = None
    folders: tuple[Folder, ...] = ()
    """What belongs to the workspace, the working directory first."""
    worktree: "Worktree | None" = None
    """The worktree the session has for itself, with what was left uncommitted elsewhere."""
    trusted: bool = False

    def widen(self, paths: Iterable[str]) -> "Checkout":
        """The same with more folders."""
        more = (Folder(path, _find_repository(path)) for path in paths)
        return msgspec.structs.replace(self, folders=(*self.folders, *more))

    def context(self) -> JsonObject:
        """As `session.start` carries it."""
        context: JsonObject = {"cwd": self.cwd}
        if self.git_root:
            context["gitRoot"] = self.git_root
        if self.branch:
            context["branch"] = self.branch
        if self.head:
            context["headCommit"] = self.head
        return context


def find_checkout(cwd: str, more: Iterable[str] = ()) -> Checkout:
    """Find the repository around a directory. Never fails: what cannot be read is left out."""
    root = _find_repository(cwd)
    branch, head = _read_head(os.path.join(root, ".git")) if root else (None, None)
    folders = (Folder(cwd, root),)
    around = Checkout(cwd=cwd, git_root=root, branch=branch, head=head, folders=folders)
    return around.widen(more)


def _find_repository(folder: str) -> str | None:
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _read_head(marker: str) -> tuple[str | None, str | None]:
    git_dir = marker
    if os.path.isfile(marker):  # a worktree or submodule: the file names the real folder
        line = _read_line(marker) or ""
        target = line.removeprefix("gitdir:").strip()
        git_dir = os.path.join(os.path.dirname(marker), target)
    head = _read_line(os.path.join(git_dir, "HEAD")) or ""
    if not head.startswith("ref:"):
        return None, head or None
    reference = head.removeprefix("ref:").strip()
    commit = _read_line(os.path.join(git_dir, reference))
    return reference.removeprefix("refs/heads/"), commit


def _read_line(path: str) -> str | None:
    try:
        return read_regular(path, 4096).split(b"\n")[0].decode("utf-8", "replace").strip()
    except OSError:
        return None


def list_entries(folder: str) -> tuple[str, ...]:
    """The first names in a directory, directories with a slash; says how many were left out.

    Of a directory with very many entries not all are looked at: that would delay the start.
    """
    try:
        with os.scandir(folder) as entries:
            some = islice(entries, LOOKED_AT + 1)
            names = [entry.name + ("/" if entry.is_dir() else "") for entry in some]
    except OSError:
        return ()
    many = len(names) > LOOKED_AT
    names.sort()
    shown = names[:LISTED]
    if len(names) > LISTED:
        shown.append("… and very many more" if many else f"… and {len(names) - LISTED} more")
    return tuple(shown)


def temp_folder() -> str:
    """The directory for temporary files; `tempfile` would cost 5 ms of start-up to say the same."""
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - it is allowed, not written to


def system_name() -> str:
    """The operating system, in a word or two."""
    uname = os.uname()
    kind = "macOS" if sys.platform == "darwin" else uname.sysname
    return f"{kind} {uname.release} ({uname.machine})"
