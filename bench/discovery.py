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


Start = Callable[..., Coroutine[None, None, float]]


async def measure_discovery(trimtab: Path, server: TimedServer, row: Row) -> None:
    """Time to the first request, beyond what it takes in an empty folder."""
    base = tempfile.mkdtemp(prefix="trimtab-bench-discovery-")
    try:
        empty = os.path.join(base, "empty")
        os.mkdir(empty)
        added = _comparison(trimtab, server, empty)
        await _measure_trees(added, base, empty, row)
        await _measure_skills(added, base, row)
    finally:
        shutil.rmtree(base)


def _comparison(trimtab: Path, server: TimedServer, empty: str) -> Start:
    async def start(folder: str, **env: str) -> float:
        argv: list[str | Path] = [trimtab, "-C", folder, "-p", "hi", "--output-format", "json"]
        server.load(Script.of([{"text": "Done."}]))
        return (await spawn([*argv, "--trust-folder"], server, **env)).to_first

    async def added(folder: str, **env: str) -> float:
        """The shortest start here less the shortest in an empty folder, measured in turn."""
        times = [(await start(folder, **env), await start(empty)) for _ in range(ROUNDS)]
        fastest = min(one for one, _ in times) - min(other for _, other in times)
        return max(fastest, 0.0)

    return added


async def _measure_trees(added: Start, base: str, empty: str, row: Row) -> None:
    for size in TREES:
        tree = os.path.join(base, f"tree{size}")
        make_tree(tree, size)
        row(f"start in a tree of {size:,} files adds, ms", await added(tree), None, LIMIT)
        if size == TREES[-1]:
            more = await added(empty, HOME=tree, COPILOT_HOME=os.path.join(tree, "home"))
            row(f"start with a home of {size:,} files adds, ms", more, None, LIMIT)
        shutil.rmtree(tree)
    flat = os.path.join(base, "flat")
    make_flat(flat, TREES[-1])
    row(f"start in one folder of {TREES[-1]:,} files adds, ms", await added(flat), None, LIMIT)
    shutil.rmtree(flat)


def make_flat(root: str, files: int) -> None:
    os.mkdir(root)
    for number in range(files):
        os.close(os.open(os.path.join(root, f"f{number}.txt"), os.O_CREAT | os.O_WRONLY))


async def _measure_skills(added: Start, base: str, row: Row) -> None:
    for count in SKILLS:
        project = os.path.join(base, f"skills{count}")
        paths = [make_skill(project, number) for number in range(count)]
        more = await added(project)
        floor = min(milliseconds(lambda: read_all(paths)) for _ in range(3))  # noqa: B023 - called now
        row(f"start with {count:,} skills adds, ms", more, floor)
        if count == SKILLS[-1]:
            home = os.path.join(base, "home")
            os.mkdir(home)
            again = await added(project, COPILOT_HOME=home)  # the shortest: what was read is kept
            row(f"the next start with {count:,} skills adds, ms", again, floor)
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
