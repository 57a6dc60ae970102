"""Search in a tree of many files: an answer within its budget, and one that says what is missing.

Run as a program with the number of files: `python tests/properties/search_cases.py 500000`.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from toolkit import open_bench
from trimtab.tools.paths import TIMEOUT

IN_A_FOLDER = 500
SLACK = 2.0
"""Seconds to start, stop and read what was found."""
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("grep", {"pattern": "needle"}),
    ("grep", {"pattern": "nowhere at all"}),
    ("grep", {"pattern": "file", "output_mode": "content"}),
    ("grep", {"pattern": "file", "output_mode": "count"}),
    ("glob", {"pattern": "**/needle*"}),
    ("glob", {"pattern": "**/*.txt"}),
]


def make_tree(root: Path, files: int) -> None:
    for start in range(0, files, IN_A_FOLDER):
        folder = root / f"d{start // IN_A_FOLDER // 100}" / f"e{start // IN_A_FOLDER}"
        folder.mkdir(parents=True)
        for number in range(start, min(files, start + IN_A_FOLDER)):
            fd = os.open(folder / f"f{number}.txt", os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"file %d\n" % number)
            os.close(fd)
    (root / "needle.txt").write_text("a needle\n")


async def check(files: int, folder: Path) -> float:
    """Every question has its answer in time; gives the seconds of the slowest."""
    async with open_bench(folder) as bench:
        make_tree(bench.root, files)
        slowest = 0.0
        for name, args in ASKED:
            start = time.monotonic()
            text = await bench.text(name, **args)
            seconds = time.monotonic() - start
            assert seconds < TIMEOUT + SLACK, (name, args, seconds)
            complete = "nowhere" in str(args) or "needle" in text
            assert complete or "stopped" in text or "Output too large" in text, (args, text[:300])
            slowest = max(slowest, seconds)
    return slowest


async def main(files: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="trimtab-search-"))
    try:
        slowest = await check(files, folder)
    finally:
        shutil.rmtree(folder)
    print(f"slowest {slowest:.1f} s (budget {TIMEOUT:g})")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
