"""What finding customizations costs: start-up by the size of a tree, and by how many there are."""

import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path

from measure import TimedServer, spawn
from snapshots import make_tree, milliseconds

from trimtab.testing import Script

TREES = (1_000, 100_000, 500_000)
SKILLS = (10, 1_000, 10_000)
LIMIT = 50.0
"""Milliseconds that the largest tree, or a home directory of its size, may add to the start."""
ROUNDS = 7

Row = Callable[..., None]


async def measure_discovery(trimtab: Path, server: TimedServer, row: Row) -> None:
    """Time to the first request, compared with that in an empty folder."""
    base = tempfile.mkdtemp(prefix="trimtab-bench-discovery-")
    try:
        start = _starter(trimtab, server)
        empty = os.path.join(base, "empty")
        os.mkdir(empty)
        await _measure_trees(start, base, empty, row)
        await _measure_skills(start, base, empty, row)
    finally:
        shutil.rmtree(base)


Start = Callable[..., Coroutine[None, None, float]]


def _starter(trimtab: Path, server: TimedServer) -> Start:
    async def start(folder: str, **env: str) -> float:
        """The shortest time from exec to the first request, in milliseconds."""
        argv: list[str | Path] = [trimtab, "-C", folder, "-p", "hi", "--output-format", "json"]
        times = []
        for _ in range(ROUNDS):
            server.load(Script.of([{"text": "Done."}]))
            times.append((await spawn([*argv, "--trust-folder"], server, **env)).to_first)
        return min(times)

    return start


async def _measure_trees(start: Start, base: str, empty: str, row: Row) -> None:
    for size in TREES:
        tree = os.path.join(base, f"tree{size}")
        make_tree(tree, size)
        largest = size == TREES[-1]
        plain = await start(empty)
        added = await start(tree) - plain
        row(f"start in a tree of {size:,} files adds, ms", max(added, 0.0), None, LIMIT)
        if largest:
            home = os.path.join(tree, "home")
            added = await start(empty, HOME=tree, COPILOT_HOME=home) - plain
            row(f"start with a home of {size:,} files adds, ms", max(added, 0.0), None, LIMIT)
        shutil.rmtree(tree)


async def _measure_skills(start: Start, base: str, empty: str, row: Row) -> None:
    for count in SKILLS:
        project = os.path.join(base, f"skills{count}")
        paths = [make_skill(project, number) for number in range(count)]
        plain = await start(empty)
        added = max(await start(project) - plain, 0.0)
        floor = min(milliseconds(lambda: read_all(paths)) for _ in range(3))  # noqa: B023 - called now
        row(f"start with {count:,} skills adds, ms", added, floor)
        shutil.rmtree(project)


def make_skill(project: str, number: int) -> str:
    folder = os.path.join(project, ".github", "skills", f"skill-{number}")
    os.makedirs(folder)
    path = os.path.join(folder, "SKILL.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"---\nname: skill-{number}\ndescription: Does thing {number}\n---\nDo it.\n")
    return path


def read_all(paths: list[str]) -> int:
    """What any program must do to know what skills there are."""
    total = 0
    for path in paths:
        with open(path, "rb") as file:
            total += len(file.read())
    return total
