"""Files of the workspace for `@`: listed behind the prompt, matched with every key."""

import asyncio
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from trimtab.workspace.git import Git, GitError

MAX_FILES = 200_000
MATCHES = 20
RANKED = 3000
"""Matching paths that are compared with each other."""
_BROKEN = re.compile("[\ud800-\udfff\n]")
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".tox"}


class FileIndex:
    """The paths below a folder, by git's ignore rules where there is a repository."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths: list[str] = []
        self._joined = ""
        self._starts = [0]
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
        paths = await asyncio.to_thread(list_files, root)
        if root != self._root:
            paths = await asyncio.to_thread(list_files, self._root)
        self.set_paths(paths)
        self.on_ready()

    def set_paths(self, paths: list[str]) -> None:
        """Use these paths, relative to the folder."""
        self._paths = paths
        self._joined = "\n".join(path.lower() for path in paths)
        self._starts = [0]
        for path in paths:
            self._starts.append(self._starts[-1] + len(path.lower()) + 1)
        self.ready = True

    def match(self, query: str) -> list[str]:
        """Return the best matches: paths that contain the query, else its letters in order."""
        query = query.lower()
        if not query:
            return sorted(self._paths, key=lambda path: (path.count("/"), path))[:MATCHES]
        found = self._find(re.escape(query))
        if not found and len(query) > 1:
            found = self._find("[^\\n]*?".join(map(re.escape, query)))
        return [self._paths[index] for _, _, index in sorted(found)[:MATCHES]]

    def _find(self, pattern: str) -> list[tuple[int, int, int]]:
        """Return a rank, the length and the index of the paths with a match, up to `RANKED`.

        All paths are one text, which is searched as a whole: that is much faster than one by one.
        """
        search = re.compile(pattern).search
        found: list[tuple[int, int, int]] = []
        position = 0
        while len(found) < RANKED and (hit := search(self._joined, position)) is not None:
            index = bisect_right(self._starts, hit.start()) - 1
            start, position = self._starts[index], self._starts[index + 1]
            length = position - start
            name = self._joined.rfind("/", start, position - 1) + 1 or start
            rank = 0 if hit.start() == name else 1 if hit.start() > name else 2
            found.append((rank, length, index))
        return found


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
