"""Finds protected files in subfolders of a workspace, within a time limit."""

import os
import time

from trimtab.contracts.protected import NAMES, TAILS
from trimtab.workspace.sandbox.policy import GIT_PARTS, START_UP
from trimtab.workspace.walk import HEAVY

SECONDS = 0.01
ENTRIES = 20_000
MOST = 200
_NAMES = frozenset(name for name in NAMES if not name[1:].startswith(START_UP))
_FOLDERS = frozenset(folder for folder, _ in TAILS)


def find_deeper(root: str, seconds: float = SECONDS) -> list[str]:
    """Return existing protected files and folders in the subfolders of a root, upper ones first.

    Folders that can be regenerated (`node_modules`) are skipped; the search ends at a time limit.
    """
    deadline, left = time.monotonic() + seconds, ENTRIES
    found: list[str] = []
    # A folder that is protected at the top is protected as a whole.
    whole = (*NAMES, ".github", ".config")
    top = [entry for entry in list_entries(root) if entry.name not in whole]
    folders = [entry.path for entry in top if is_searched(entry)]
    for folder in folders:  # grows on the way
        entries = list_entries(folder)
        left -= len(entries)
        if left < 0 or len(found) >= MOST or time.monotonic() > deadline:
            break
        for entry in entries:
            if entry.name == ".git":
                found += find_parts(entry.path)
            elif entry.name in _NAMES:
                found.append(entry.path)
            elif entry.name in _FOLDERS:
                named = [f"{entry.path}/{name}" for above, name in TAILS if above == entry.name]
                found += [path for path in named if os.path.exists(path)]
            elif is_searched(entry):
                folders.append(entry.path)
    return found[:MOST]


def find_modules(git: str) -> list[str]:
    """Return the protected files in the repositories of submodules, recursively."""
    found: list[str] = []
    folders = [os.path.join(git, "modules")]
    for folder in folders:  # grows on the way
        if len(folders) > MOST:
            break
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
