"""Files of the workspace for `@`: listed behind the prompt, matched with every key."""

import asyncio
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from heapq import nsmallest
from itertools import accumulate, islice
from typing import TypeVar

from trimtab.workspace.git import Git, GitError

MAX_FILES = 200_000
MATCHES = 20
RANKED = 3000
"""Matching paths that are compared with each other."""
Result = TypeVar("Result")
_BROKEN = re.compile("[\ud800-\udfff\n]")
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".tox"}


class Paths:
    """Paths in a form that is searched fast. Immutable, so that a thread can build it."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = paths
        lowered = [path.lower() for path in paths]
        self._joined = "\n" + "\n".join(lowered)
        """All paths as one text, each after a line break: that is much faster than one by one."""
        self._starts = list(accumulate((len(path) + 1 for path in lowered), initial=1))
        self._first = nsmallest(MATCHES, paths, key=lambda path: (path.count("/"), path))

    def match(self, query: str) -> list[str]:
        """Return the best matches: paths that contain the query, else its letters in order."""
        query = query.lower()
        if not query:
            return self._first
        found = self._find(re.escape(query))
        if not found and len(query) > 1:
            found = self._find_letters(query)
        return [self._paths[index] for _, _, index in sorted(found)[:MATCHES]]

    def _find(self, pattern: str) -> list[tuple[int, int, int]]:
        """Return a rank, the length and the index of paths with a match, up to `RANKED`."""
        search = re.compile(pattern).search
        found: list[tuple[int, int, int]] = []
        position = 1
        while len(found) < RANKED and (hit := search(self._joined, position)) is not None:
            found.append(self._rank(hit.start()))
            position = self._starts[found[-1][2] + 1]
        return found

    def _find_letters(self, letters: str) -> list[tuple[int, int, int]]:
        """Do so for paths that contain these letters in order.

        The pattern begins with the line break and never goes back, so a path costs one look.
        """
        if not all(letter in self._joined for letter in letters):
            return []
        steps = "".join(f"[^\\n{re.escape(letter)}]*+{re.escape(letter)}" for letter in letters)
        hits = islice(re.finditer(f"\n{steps}", self._joined), RANKED)
        return [self._rank(self._joined.index(letters[0], hit.start())) for hit in hits]

    def _rank(self, position: int) -> tuple[int, int, int]:
        """Return the rank of a match that begins at a position, its length and its index."""
        index = bisect_right(self._starts, position) - 1
        start, end = self._starts[index], self._starts[index + 1]
        name = self._joined.rfind("/", start, end - 1) + 1 or start
        rank = 0 if position == name else 1 if position > name else 2
        return rank, end - start, index


class FileIndex:
    """The paths below a folder, by git's ignore rules where there is a repository."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths = Paths()
        self._task: asyncio.Task[None] | None = None
        self.ready = False
        self.stale = False
        """True if files may have come or gone since they were listed."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called when the files have been listed: somebody may have typed already."""

    def start(self) -> None:
        """Begin to list the files in a thread; later calls list them again."""
        self.stale = False
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._load())

    def use(self, root: str) -> None:
        """List the files of another folder from now on."""
        if root != self._root:
            self._root, self.ready = root, False

    async def _load(self) -> None:
        root = self._root
        paths = await run_apart(lambda: Paths(list_files(root)))
        if root != self._root:
            root = self._root
            paths = await run_apart(lambda: Paths(list_files(root)))
        self.set_paths(paths)
        self.on_ready()

    def set_paths(self, paths: Paths) -> None:
        """Use these paths, relative to the folder."""
        self._paths, self.ready = paths, True

    def match(self, query: str) -> list[str]:
        """Return the best matches; none until the files have been listed."""
        return self._paths.match(query)


async def run_apart(work: Callable[[], Result]) -> Result:
    """Run something in a thread that the end of the program does not wait for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # it is raised where the result is awaited
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True).start()
    return await future


def list_files(root: str) -> list[str]:
    """Return the files and folders below a folder."""
    try:
        listed = Git(root).output("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        paths = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    except GitError:
        paths = list(_walk(root))
    # A name that is not UTF-8 cannot stand in a prompt.
    paths = [path for path in paths if not _BROKEN.search(path)][:MAX_FILES]
    folders = {f"{os.path.dirname(path)}/" for path in paths if "/" in path}
    return [*sorted(folders), *paths]


def _walk(root: str) -> Iterator[str]:
    found = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        base = os.path.relpath(folder, root)
        for name in files:
            yield name if base == "." else f"{base}/{name}"
            found += 1
            if found >= MAX_FILES:
                return
