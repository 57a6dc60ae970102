"""Files of the workspace for `@`: listed behind the prompt, matched with every key."""

import asyncio
import os
import subprocess
from collections.abc import Iterator

MAX_FILES = 200_000
MATCHES = 20
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".tox"}


class FileIndex:
    """The paths below a folder, by git's ignore rules where there is a repository."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._paths: list[str] = []
        self._folded: list[str] = []
        self._last: tuple[str, list[int]] = ("", [])
        self._task: asyncio.Task[None] | None = None
        self.ready = False

    def start(self) -> None:
        """Begin to list the files in a thread; later calls list them again."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        paths = await asyncio.to_thread(list_files, self._root)
        self.set_paths(paths)

    def set_paths(self, paths: list[str]) -> None:
        """Use these paths, relative to the folder."""
        self._paths = paths
        self._folded = [path.lower() for path in paths]
        self._last = ("", [])
        self.ready = True

    def match(self, query: str) -> list[str]:
        """Return the best matches: the letters of the query in order, names before folders."""
        query = query.lower()
        if not query:
            return sorted(self._paths, key=lambda path: (path.count("/"), path))[:MATCHES]
        candidates = self._candidates(query)
        scored: list[tuple[int, int, str]] = []
        hits: list[int] = []
        for index in candidates:
            path = self._folded[index]
            if (score := score_path(path, query)) is not None:
                hits.append(index)
                scored.append((score, len(path), self._paths[index]))
        self._last = query, hits
        scored.sort()
        return [path for _, _, path in scored[:MATCHES]]

    def _candidates(self, query: str) -> "range | list[int]":
        """Return the paths that can match: those of the last query if this one extends it."""
        last, hits = self._last
        return hits if last and query.startswith(last) else range(len(self._folded))


def score_path(path: str, query: str) -> int | None:
    """Return how well a path matches, lower is better; None if it does not."""
    if (at := path.find(query)) >= 0:
        name = path.rfind("/") + 1
        return 0 if at == name else 1 if at > name else 2
    position = 0
    for character in query:
        position = path.find(character, position) + 1
        if not position:
            return None
    return 3


def list_files(root: str) -> list[str]:
    """Return the files and folders below a folder."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
            timeout=20,
        ).stdout
        paths = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.SubprocessError):
        paths = list(_walk(root))
    paths = paths[:MAX_FILES]
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
