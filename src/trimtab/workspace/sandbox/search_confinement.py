"""Confines a search to the checked folders, even if links are created meanwhile."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from trimtab.workspace.checked_open import open_exact
from trimtab.workspace.sandbox import landlock
from trimtab.workspace.sandbox.confinement import Start, spawn_bound

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/etc/ld.so.cache")
"""The paths a program needs to start."""
IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
OWN_IGNORE_FILES = (".gitconfig", ".config/git/config", ".config/git/ignore", ".gitignore")


class SearchConfinement:
    """Starts programs that may read below some directories and nowhere else."""

    def __init__(self, roots: Sequence[str], program: str, home: str) -> None:
        """`roots` are resolved paths; a root that has become a link is left out."""
        self._roots = roots
        self._program = program
        self._home = home

    def spawn(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it; return its process id and a function to call at its end. Raises `OSError`."""
        descriptors = list(self._open_all())
        try:
            bind = partial(landlock.restrict_reading, descriptors)
            return spawn_bound(bind, start.spawn), lambda: None
        finally:
            for fd in descriptors:
                os.close(fd)

    def _open_all(self) -> Iterator[int]:
        for path in self._roots:
            yield from try_open(path, open_exact)
        beside = os.path.join(os.path.dirname(os.path.dirname(self._program)), "lib")
        for path in (*SYSTEM, self._program, beside, *self._ignore_files()):
            yield from try_open(path, os.open)

    def _ignore_files(self) -> Iterator[str]:
        """Return the ignore files above the roots."""
        yield from (os.path.join(self._home, name) for name in OWN_IGNORE_FILES)
        above = {os.path.dirname(root) for root in self._roots}
        seen: set[str] = set()
        while above:
            seen |= above
            yield from (os.path.join(folder, name) for folder in above for name in IGNORE_FILES)
            above = {os.path.dirname(folder) for folder in above} - seen


def try_open(path: str, opening: Callable[[str, int], int]) -> Iterator[int]:
    try:
        yield opening(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return


def confine_search(roots: Sequence[str], program: str, home: str) -> SearchConfinement | None:
    """Return the confinement of a search, or None if the kernel does not support it."""
    if not landlock.find_version():
        return None
    return SearchConfinement(roots, program, home)
