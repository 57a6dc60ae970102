"""How long a workspace snapshot takes, by the size of the tree."""

import os
import shutil
import tempfile
import time

SIZES = (1_000, 10_000, 100_000)
LIMIT = 300.0
"""Milliseconds for the largest tree, unchanged."""


def snapshot_ms(files: int) -> tuple[float, float, float]:
    """Milliseconds of the first look, of the fastest look at the unchanged tree, of plain stats."""
    from trimtab.undo.blobs import BlobStore
    from trimtab.undo.snapshots import Snapshot

    base = tempfile.mkdtemp(prefix="trimtab-bench-tree-")
    try:
        root = os.path.join(base, "tree")
        make_tree(root, files)
        snapshot = Snapshot(root, BlobStore(os.path.join(base, "blobs")))
        first = milliseconds(snapshot.refresh)
        time.sleep(0.1)  # files that are younger than a clock tick are read again
        snapshot.refresh()
        again = min(milliseconds(snapshot.refresh) for _ in range(5))
        floor = min(milliseconds(lambda: plain_stats(root)) for _ in range(3))
        return first, again, floor
    finally:
        shutil.rmtree(base)


def make_tree(root: str, files: int) -> None:
    for number in range(files):
        folder = os.path.join(root, f"d{number // 3000}", f"e{number // 100}")
        if number % 100 == 0:
            os.makedirs(folder)
        with open(os.path.join(folder, f"f{number}.txt"), "w", encoding="utf-8") as file:
            file.write(f"file {number}\n")


def plain_stats(root: str) -> int:
    """What any program must do to know that nothing has changed."""
    count = 0
    stack = [root]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return count


def milliseconds(work: object) -> float:
    assert callable(work)
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
