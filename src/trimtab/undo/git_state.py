"""Finds git's own files that a reset, commit or checkout changes: HEAD, index, refs."""

import os
from collections.abc import Iterable

from trimtab.workspace.walk import (
    Rows,
    TooLarge,
    look,
    walk,
)

NAMES = ("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD")
SHARED = ("config", "packed-refs", "objects/info/alternates")
"""Files that linked worktrees share with their main repository, besides refs and objects."""
OBJECTS, REFS, LINKED = "objects", "refs", "worktrees"
SKIPPED = frozenset((OBJECTS, "lfs"))
"""Kept by other means, or not at all."""
PASSING = ("FETCH_HEAD", "index.lock", "gc.pid", "gc.log", LINKED)
INDEXES = "trimtab-index-"
ESSENTIAL = frozenset(("HEAD", "commondir", "gitdir", "locked", "config.worktree", "trimtab.json"))
"""Without these a linked worktree is lost; everything else in its folder can be regenerated."""
SESSIONS = ("refs/trimtab", "refs/heads/trimtab", "logs/refs/heads/trimtab")
"""Refs of sessions, which move while this one works."""
MANY = 10_000
MAX_LINE = 4096
"""The limit of characters read of a file that holds a path or the name of a ref."""


class Repositories:
    """The state of the repositories in and around a folder."""

    def __init__(self, root: str, nested: Iterable[str], large: set[str]) -> None:
        """`root` is the top of a checkout, if it is one; `nested` are git folders below it.

        Only the main files of folders in `large` are listed. A folder that turns out to be too
        large is added: if it were listed completely later, its files would seem new.
        """
        self.rows: Rows = {}
        self.objects: list[str] = []
        """The folders of the objects of all repositories."""
        self._root = root
        self._large = large
        self._foreign: set[str] = set()
        self.own: set[str] = set()
        """The branches that are checked out here, and their logs."""
        self._others: tuple[str, ...] = ()
        top = git_folder(root)
        if top is not None and top != os.path.join(root, ".git") and is_repository(top):
            self._add(top, common_folder(top))
        for folder in nested:
            self._add(folder, folder)

    def is_foreign(self, path: str) -> bool:
        """Return True if a path belongs to another checkout or session."""
        if path in self.own:
            return False
        while path not in self._foreign and path != os.path.dirname(path):
            path = os.path.dirname(path)
        return path in self._foreign

    def _add(self, folder: str, common: str) -> None:
        """Add a git folder; a linked worktree shares files in the `common` folder."""
        if (key := look(folder)) is None:
            return
        self._mark_foreign(folder, common)
        self.rows[folder] = key
        names = [f"{folder}/{name}" for name in NAMES]
        names += [f"{common}/{name}" for name in (*SHARED, own_branch(folder)) if name]
        self.rows |= known(names)
        objects = os.path.join(common, OBJECTS)
        self.objects += [objects] if os.path.isdir(objects) else []
        self._add_below(folder, folder)
        if common != folder:
            self._add_below(f"{common}/{REFS}", common)

    def _add_below(self, start: str, folder: str) -> None:
        if folder in self._large:
            return
        try:
            self.rows |= self._walk(start, len(folder) + 1)
        except TooLarge:
            self._large.add(folder)

    def _walk(self, start: str, inside: int) -> Rows:
        """List everything below a folder; `inside` is the length of the repository's prefix."""
        rows: Rows = {}
        starts = [start]
        while starts:
            skipped: list[str] = []
            rows |= walk(starts, SKIPPED, MANY, float("inf"), skipped)
            starts = [path for path in skipped if not is_store(path[inside:])]
            rows |= known(starts)
            stores = (path for path in skipped if os.path.basename(path) == OBJECTS)
            self.objects += [path for path in stores if path not in (*starts, *self.objects)]
        return {path: key for path, key in rows.items() if self._counts(path, path[inside:])}

    def _counts(self, path: str, name: str) -> bool:
        if path.startswith(self._others) and os.path.basename(path) not in ESSENTIAL:
            return False
        return name not in PASSING and not name.startswith(INDEXES)

    def _mark_foreign(self, folder: str, common: str) -> None:
        """Mark what belongs to others: their checkouts of the repository, and their branches."""
        linked = [f"{common}/{LINKED}/{name}" for name in list_names(f"{common}/{LINKED}")]
        linked = [
            path for path in linked if path != folder and not is_checked_out(path, self._root)
        ]
        main = [common] if common != folder else []
        branches = {own_branch(path) for path in (*main, *linked)} - {""}
        names = (*SESSIONS, *branches, *(f"logs/{branch}" for branch in branches))
        self._foreign |= {*linked, *(f"{common}/{name}" for name in names)}
        own = own_branch(folder)
        self.own |= {f"{common}/{own}", f"{common}/logs/{own}"}
        self._others += tuple(f"{path}/" for path in linked)


def is_store(path: str) -> bool:
    """Return True if a folder named like an object store is one, not a branch or submodule."""
    parts = path.split("/")
    return REFS not in parts and parts[-2:-1] != ["modules"]


def list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def is_checked_out(linked: str, root: str) -> bool:
    """Return True if the files of a linked worktree are in a folder."""
    try:
        with open(os.path.join(linked, "gitdir"), encoding="utf-8", errors="replace") as file:
            return file.read(MAX_LINE).startswith(root + "/")
    except OSError:
        return False


def known(paths: list[str]) -> Rows:
    keys = ((path, look(path)) for path in paths)
    return {path: key for path, key in keys if key is not None}


def own_branch(folder: str) -> str:
    """Return the ref that is checked out; empty if there is none."""
    try:
        with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            name = file.read(MAX_LINE).removeprefix("ref:").strip()
    except OSError:
        return ""
    return name if name.startswith("refs/") and ".." not in name and "\0" not in name else ""


def git_folder(root: str) -> str | None:
    """Return the git directory of a checkout: `.git`, or the target of a file or link `.git`."""
    marker = os.path.join(root, ".git")
    if os.path.isdir(marker):
        return os.path.realpath(marker)
    try:
        with open(marker, encoding="utf-8", errors="surrogateescape") as file:
            line = file.read(MAX_LINE).strip()
    except OSError:
        return None
    target = line.removeprefix("gitdir:").strip()
    return os.path.realpath(os.path.join(root, target)) if target != line else None


def is_repository(folder: str) -> bool:
    """Return True if a folder is a repository; the path in a `.git` file may be anything."""
    kept = os.path.isdir(f"{folder}/{OBJECTS}") or os.path.isfile(f"{folder}/commondir")
    return kept and os.path.isfile(f"{folder}/HEAD")


def common_folder(folder: str) -> str:
    """Return the folder of the refs: for a linked worktree, the main repository's git directory."""
    try:
        with open(os.path.join(folder, "commondir"), encoding="utf-8") as file:
            return os.path.realpath(os.path.join(folder, file.read(MAX_LINE).strip()))
    except OSError:
        return folder


def is_git_state(path: str) -> bool:
    """Return True if a path is inside a git directory, where nothing is ever merged."""
    return ".git" in path.split("/")
