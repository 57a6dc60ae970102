"""How long tools take: search, edits and commands, each beside the least that would do the same."""

import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from snapshots import make_tree

from toolkit import Bench, open_bench
from trimtab.workspace.search import find_ripgrep

FILES = 20_000
LARGE = 50 << 20
ROUNDS = 7

Row = tuple[str, float, float]
"""What was done, milliseconds of ours, milliseconds of the plain way."""


async def measure_hands() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-hands-") as folder:
        async with open_bench(Path(folder)) as bench:
            return [*await search_rows(bench), await edit_row(bench), await command_row(bench)]


async def search_rows(bench: Bench) -> list[Row]:
    make_tree(str(bench.path("tree")), FILES)
    plain = {"grep": ["-n", "file 199"], "glob": ["--files", "-g", "**/f77*.txt"]}
    asked: dict[str, dict[str, Any]] = {
        "grep": {"pattern": "file 199", "output_mode": "content", "-n": True},
        "glob": {"pattern": "**/f77*.txt"},
    }
    rows = []
    for name, args in asked.items():
        argv = [find_ripgrep(os.environ), *plain[name], "."]
        ours = await fastest(partial(bench.text, name, **args))
        floor = await fastest(partial(run, argv, bench.root))
        rows.append((f"{name} in {FILES:,} files, ms", ours, floor))
    return rows


async def edit_row(bench: Bench) -> Row:
    line = b"0123456789 the same line again and again\n"
    half = line * (LARGE // 2 // len(line))
    path = bench.write("large.txt", half + b"version 0\n" + half)
    version = itertools.count()

    async def edit() -> None:
        old = next(version)
        args = {"old_str": f"version {old}\n", "new_str": f"version {old + 1}\n"}
        edited = await bench.call("edit", path="large.txt", **args)
        assert edited.kind == "success", edited.text

    async def replace() -> None:
        old = next(version)
        data = path.read_bytes()
        assert data.count(b"version %d\n" % old) == 1
        new = data.replace(b"version %d\n" % old, b"version %d\n" % (old + 1))
        path.with_suffix(".new").write_bytes(new)
        os.replace(path.with_suffix(".new"), path)

    return f"edit of a {LARGE >> 20} MB file, ms", await fastest(edit), await fastest(replace)


async def command_row(bench: Bench) -> Row:
    ours = await fastest(partial(bench.bash, "true"), 3 * ROUNDS)
    floor = await fastest(partial(run, ["bash", "-c", "true"], bench.root), 3 * ROUNDS)
    return "bash, a round trip, ms", ours, floor


async def run(argv: list[str], cwd: Path) -> None:
    await asyncio.to_thread(
        subprocess.run, argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )


async def fastest(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1000)
    return min(times)


if __name__ == "__main__":
    for what, ours, floor in asyncio.run(measure_hands()):
        print(f"{what:<44} {ours:9.2f} {floor:9.2f} {ours / floor:6.2f}x")
