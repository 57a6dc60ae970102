"""Finds protected files in regenerated subfolders, which the sandbox does not protect."""

import os
import time
from collections.abc import Iterator

import msgspec

from trimtab.contracts.protected import NAMES, TAILS
from trimtab.workspace.sandbox.deeper import find_deeper
from trimtab.workspace.sandbox.policy import GIT_PARTS, START_UP

SECONDS = 3.0
ENTRIES = 300_000
_NAMES = frozenset(name for name in NAMES if not name[1:].startswith(START_UP))


class Uncovered(msgspec.Struct, frozen=True):
    """Paths relative to the root; `complete` is false if the search ran out of time."""

    paths: tuple[str, ...]
    complete: bool


def find_uncovered(root: str, seconds: float = SECONDS) -> Uncovered:
    """Find protected files in subfolders that a sandboxed command could write."""
    protected = find_deeper(root)
    paths: list[str] = []
    until, left = time.monotonic() + seconds, ENTRIES
    for folder, folders, files in os.walk(root):
        left -= len(folders) + len(files)
        if left < 0 or time.monotonic() > until:
            return Uncovered(tuple(paths), complete=False)
        if folder == root:
            # A folder that is protected at the top is protected as a whole.
            folders[:] = [name for name in folders if name not in NAMES and name != ".github"]
            continue
        paths += (
            os.path.relpath(path, root)
            for path in _find_protected(folder, (*folders, *files))
            if not any(path == top or path.startswith(top + os.sep) for top in protected)
        )
        folders[:] = [name for name in folders if name not in NAMES]
    return Uncovered(tuple(paths), complete=True)


def _find_protected(folder: str, names: tuple[str, ...]) -> Iterator[str]:
    above = os.path.basename(folder)
    for name in names:
        path = os.path.join(folder, name)
        if name == ".git":
            parts = (os.path.join(path, part) for part in GIT_PARTS)
            yield from (part for part in parts if os.path.exists(part))
        elif name in _NAMES or (above, name) in TAILS:
            yield path
