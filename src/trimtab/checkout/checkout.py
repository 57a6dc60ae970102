"""The checkout of a session: folders, repository, branch; read without running git."""

import os
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from trimtab.checkout.remotes import HostedRepository, find_hosted
from trimtab.config.files import read_regular
from trimtab.contracts.events.envelope import JsonObject

if TYPE_CHECKING:
    from trimtab.checkout.worktrees import Worktree

MAX_LISTED = 60
MAX_SCANNED = 5000
"""Entries of a directory that are counted."""


class Folder(msgspec.Struct, frozen=True):
    """A folder of the workspace, and the repository that contains it, if any."""

    path: str
    git_root: str | None = None


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """The place a session works in: folders, repository, worktree, trust."""

    cwd: str
    git_root: str | None = None
    branch: str | None = None
    head: str | None = None
    hosted: HostedRepository | None = None
    """The repository on GitHub or Azure DevOps that the remote names."""
    folders: tuple[Folder, ...] = ()
    """The folders of the workspace, the working directory first."""
    worktree: "Worktree | None" = None
    """The session's own worktree, if it has one."""
    trusted: bool = False

    def widen(self, paths: Iterable[str]) -> "Checkout":
        """Return the checkout with more folders."""
        more = (Folder(path, _find_repository(path)) for path in paths)
        return msgspec.structs.replace(self, folders=(*self.folders, *more))

    def context(self) -> JsonObject:
        """Return the context for `session.start`."""
        context: JsonObject = {"cwd": self.cwd}
        if self.git_root:
            context["gitRoot"] = self.git_root
        if self.hosted:
            context["repository"] = self.hosted.name
            context["hostType"] = self.hosted.service
            context["repositoryHost"] = self.hosted.host
        if self.branch:
            context["branch"] = self.branch
        if self.head:
            context["headCommit"] = self.head
        return context

    def metadata(self) -> JsonObject:
        """Return what `workspace.yaml` keeps of the repository; None for what there is not."""
        return {
            "git_root": self.git_root,
            "branch": self.branch,
            "repository": self.hosted.name if self.hosted else None,
            "host_type": self.hosted.service if self.hosted else None,
        }


MAX_CHILDREN = 16
MAX_NAMES = 500


def find_suffixes(cwd: str) -> frozenset[str]:
    """Return the suffixes of the files in a folder and in the first folders below it.

    At most 16 folders and 500 entries of each are looked at: this runs at every start.
    """
    found: set[str] = set()
    children = _list_suffixes(cwd, found)
    for child in children[:MAX_CHILDREN]:
        _list_suffixes(child, found)
    return frozenset(found)


def _list_suffixes(folder: str, found: set[str]) -> list[str]:
    """Add the suffixes of a folder's files; return the folders in it that are not hidden."""
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, MAX_NAMES):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    found.add(os.path.splitext(entry.name)[1])
    except OSError:
        return []
    return sorted(folders)


def find_checkout(cwd: str, more: Iterable[str] = ()) -> Checkout:
    """Find the repository that contains a directory. Never fails: unreadable parts are left out."""
    root = _find_repository(cwd)
    checkout = Checkout(cwd=cwd, git_root=root, folders=(Folder(cwd, root),))
    if root:
        git_dir = _find_git_dir(os.path.join(root, ".git"))
        # The branches and settings of a worktree are in the folder of the main checkout.
        common = os.path.join(git_dir, _read_line(os.path.join(git_dir, "commondir")) or "")
        branch, head = _read_head(git_dir, common)
        hosted = find_hosted(common)
        checkout = msgspec.structs.replace(checkout, branch=branch, head=head, hosted=hosted)
    return checkout.widen(more)


def plain_checkout(cwd: str, more: Iterable[str] = ()) -> Checkout:
    """Return folders as a session sees them that must not look at git."""
    return Checkout(cwd=cwd, folders=tuple(Folder(path) for path in (cwd, *more)))


def _find_repository(folder: str) -> str | None:
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _find_git_dir(marker: str) -> str:
    if not os.path.isfile(marker):
        return marker
    # A worktree or submodule: the file names the real folder.
    target = (_read_line(marker) or "").removeprefix("gitdir:").strip()
    return os.path.join(os.path.dirname(marker), target)


def _read_head(git_dir: str, common: str) -> tuple[str | None, str | None]:
    """Return the branch and the commit of a checkout, as far as they can be read."""
    head = _read_line(os.path.join(git_dir, "HEAD")) or ""
    if not head.startswith("ref:"):
        return None, head or None
    reference = head.removeprefix("ref:").strip()
    commit = _read_line(os.path.join(common, reference))
    return reference.removeprefix("refs/heads/"), commit


def _read_line(path: str) -> str | None:
    try:
        return read_regular(path, 4096).split(b"\n")[0].decode("utf-8", "replace").strip()
    except OSError:
        return None


def list_entries(folder: str) -> tuple[str, ...]:
    """Return the first names in a directory, folders with a slash, and how many were left out.

    A directory with very many entries is not read completely: that would delay the start.
    """
    try:
        with os.scandir(folder) as entries:
            some = islice(entries, MAX_SCANNED + 1)
            names = [entry.name + ("/" if entry.is_dir() else "") for entry in some]
    except OSError:
        return ()
    many = len(names) > MAX_SCANNED
    names.sort()
    shown = names[:MAX_LISTED]
    if len(names) > MAX_LISTED:
        shown.append("… and very many more" if many else f"… and {len(names) - MAX_LISTED} more")
    return tuple(shown)


def temp_folder(env: Mapping[str, str]) -> str:
    """Return the directory for temporary files; importing `tempfile` would take 5 ms."""
    return env.get("TMPDIR") or "/tmp"  # noqa: S108 - it is allowed, not written to


def system_name() -> str:
    """Return the name and version of the operating system."""
    uname = os.uname()
    kind = "macOS" if sys.platform == "darwin" else uname.sysname
    return f"{kind} {uname.release} ({uname.machine})"
