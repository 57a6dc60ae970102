"""Finds protected files in subfolders of a workspace."""

import errno
import os

import msgspec

from trimtab.contracts.protected import NAMES, TAILS
from trimtab.workspace.sandbox.policy import GIT_PARTS, START_UP
from trimtab.workspace.walk import HEAVY

MAX_FOLDERS = 200_000
MAX_PROTECTED = 1000
"""The number of paths that bubblewrap can be told to protect."""
_NAMES = frozenset(name for name in NAMES if not name[1:].startswith(START_UP))
_FOLDERS = frozenset(folder for folder, _ in TAILS)


class Listing(msgspec.Struct, frozen=True):
    """The entries of a folder that matter, as of its last change."""

    changed: tuple[int, ...]
    folders: tuple[str, ...]
    """Folders to search."""
    repositories: tuple[str, ...]
    protected: tuple[str, ...]
    """Paths that are protected if they exist."""


_listings: dict[str, Listing] = {}
"""The known folders; one that has not changed since is not read again."""


def find_deeper(root: str, max_entries: int = MAX_FOLDERS) -> list[str]:
    """Return existing protected files and folders in the subfolders of a root, upper ones first.

    Folders that can be regenerated (`node_modules`) are skipped. Raises `OSError` if there are too
    many folders or protected names: what is not found could not be protected.
    """
    # A folder that is protected at the top is protected as a whole.
    whole = {os.path.join(root, name) for name in (*NAMES, ".github", ".config")}
    folders = [path for path in read_listing(root).folders if path not in whole]
    found: list[str] = []
    for folder in folders:  # grows on the way
        listing = read_listing(folder)
        for repository in listing.repositories:
            found += find_parts(repository)
        found += [path for path in listing.protected if os.path.lexists(path)]
        folders += listing.folders
        if len(folders) > max_entries or len(found) > MAX_PROTECTED:
            reason = f"{root} has too many folders to protect those that make things run"
            raise OSError(errno.E2BIG, f"{reason}; work in a smaller folder, or use --no-sandbox")
    return found


def read_listing(folder: str) -> Listing:
    try:
        about = os.stat(folder)
    except OSError:  # gone
        return Listing((), (), (), ())
    # Commands may set the other time, and put one folder in the place of another.
    changed = about.st_dev, about.st_ino, about.st_ctime_ns
    known = _listings.get(folder)
    if known is not None and known.changed == changed:
        return known
    if len(_listings) > MAX_FOLDERS:
        _listings.clear()
    listing = _listings[folder] = list_folder(folder, changed)
    return listing


def list_folder(folder: str, changed: tuple[int, ...]) -> Listing:
    folders: list[str] = []
    repositories: list[str] = []
    protected: list[str] = []
    for entry in list_entries(folder):
        if entry.name == ".git":
            repositories.append(entry.path)
        elif entry.name in _NAMES:
            protected.append(entry.path)
        elif entry.name in _FOLDERS:
            protected += [f"{entry.path}/{name}" for above, name in TAILS if above == entry.name]
        elif is_searched(entry):
            folders.append(entry.path)
    return Listing(changed, tuple(folders), tuple(repositories), tuple(protected))


def find_modules(git: str) -> list[str]:
    """Return the protected files in the repositories of submodules, recursively."""
    found: list[str] = []
    folders = [os.path.join(git, "modules")]
    for folder in folders:  # grows on the way
        if len(folders) > MAX_PROTECTED:
            reason = f"{git} has too many submodules to protect their hooks"
            raise OSError(errno.E2BIG, f"{reason}; use --no-sandbox")
        if os.path.isfile(os.path.join(folder, "HEAD")):
            found += find_parts(folder)
            folders.append(os.path.join(folder, "modules"))
        else:  # the name of a submodule may have several parts
            entries = list_entries(folder)
            folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def find_parts(git: str) -> list[str]:
    paths = (os.path.join(git, name) for name in GIT_PARTS)
    return [path for path in paths if os.path.exists(path)]


def is_searched(entry: os.DirEntry[str]) -> bool:
    return entry.name not in HEAVY and entry.name != ".git" and entry.is_dir(follow_symlinks=False)


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone, or not ours to read
        return []
