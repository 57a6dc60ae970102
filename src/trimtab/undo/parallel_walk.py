"""Lists a large tree with two processes, since two threads would block each other."""

import marshal
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from trimtab.workspace import walk as walker
from trimtab.workspace.walk import (
    Key,
    Rows,
    TooLarge,
    look,
    walk,
)

PROGRAM = (sys.executable, "-I", "-S", walker.__file__)


class ParallelWalk:
    """Lists a tree repeatedly, half of it in another process.

    As long as nothing changes, that process returns the same bytes, which are then not parsed.
    """

    def __init__(self, root: str, program: Sequence[str] = PROGRAM) -> None:
        self._root = root
        self._program = program
        self._answer = b""
        self._child_result: tuple[Rows, list[str]] = {}, []

    def walk(self, skip: frozenset[str], limit: int, deadline: float, skipped: list[str]) -> Rows:
        """Return the same as `walk`, in less time. Raises `TooLarge`."""
        rows, folders = _first_levels(self._root, skip, skipped)
        own_half, child_half = folders[::2], folders[1::2]
        task = marshal.dumps((child_half, skip, limit, deadline - time.monotonic()))
        try:
            child = subprocess.Popen(self._program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError:
            return rows | walk(folders, skip, limit, deadline, skipped)
        with child:
            try:
                assert child.stdin is not None
                assert child.stdout is not None
                with suppress(BrokenPipeError):  # it has ended; its exit code says so
                    child.stdin.write(task)
                    child.stdin.close()
                rows |= walk(own_half, skip, limit, deadline, skipped)
                answer = child.stdout.read()
            except BaseException:
                child.kill()
                raise
        if child.returncode != 0:
            return rows | walk(child_half, skip, limit, deadline, skipped)
        found, passed = self._read(answer)
        rows |= found
        skipped += passed
        return rows

    def _read(self, answer: bytes) -> tuple[Rows, list[str]]:
        if answer != self._answer:
            found = marshal.loads(answer)  # noqa: S302 - from our own process
            if found is None:
                raise TooLarge
            self._answer, self._child_result = answer, found
        return self._child_result


def _first_levels(root: str, skip: frozenset[str], skipped: list[str]) -> tuple[Rows, list[str]]:
    """Return the rows of the upper levels, and enough directories below them to share."""
    rows: Rows = {}
    folders = [root]
    for _ in range(3):
        if len(folders) >= 64:
            break
        level = {path: key for folder in folders for path, key in _entries(folder)}
        passed = [path for path in _folders(level) if _is_in(path, skip)]
        for path in passed:
            del level[path]
        skipped += passed
        rows |= level
        folders = _folders(level)
    return rows, folders


def _folders(rows: Rows) -> list[str]:
    return [path for path, key in rows.items() if stat.S_ISDIR(key[0])]


def _is_in(path: str, skip: frozenset[str]) -> bool:
    return path in skip or os.path.basename(path) in skip


def _entries(folder: str) -> Iterator[tuple[str, Key]]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        key = look(path)
        if key is not None:
            yield path, key
