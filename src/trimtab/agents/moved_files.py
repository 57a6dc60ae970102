"""Follows files that must not be read to the names they are given later.

Rules name files. A command that may do anything else can rename a denied file, or a folder above
it, and the next command would find it under a name that no rule has. The descriptors kept here
lead to the file, not to a name, and keep the file's number from being given to another one.
"""

import os
import weakref
from collections.abc import Iterable

MAX_FOLLOWED = 256
OPEN = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
DESCRIPTORS = "/proc/self/fd"


class MovedFiles:
    """The files that the rules denied so far."""

    def __init__(self) -> None:
        self._descriptors: dict[tuple[int, int], int] = {}
        weakref.finalize(self, release, self._descriptors)

    def follow(self, paths: Iterable[str]) -> None:
        """Follow files from now on, at most `MAX_FOLLOWED`."""
        if not hasattr(os, "O_PATH"):  # only Linux tells the name of an open file
            return
        for path in paths:
            if len(self._descriptors) >= MAX_FOLLOWED:
                return
            try:
                fd = os.open(path, OPEN)
            except OSError:
                continue
            about = os.fstat(fd)
            if self._descriptors.setdefault((about.st_dev, about.st_ino), fd) != fd:
                os.close(fd)

    def find(self) -> list[str]:
        """Return the names that the files have now. A file without a name is followed no more."""
        names: list[str] = []
        for key, fd in list(self._descriptors.items()):
            name = os.readlink(f"{DESCRIPTORS}/{fd}")
            if os.fstat(fd).st_nlink and os.path.lexists(name):
                names.append(name)
            else:
                os.close(self._descriptors.pop(key))
        return names

    def forget(self) -> None:
        release(self._descriptors)


def release(descriptors: dict[tuple[int, int], int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
