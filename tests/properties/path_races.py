"""Reads, writes, moves and removes while somebody swaps a folder on the way for a link to outside."""

import asyncio
import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimtab.workspace.local import LocalWorkspace


@contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """A folder that is, from one moment to the next, a link to one outside, and back."""
    link = place.with_name("link")
    link.symlink_to(outside)
    over = threading.Event()
    libc = ctypes.CDLL(None)
    here, exchange = -100, 2

    def swap() -> None:
        while not over.is_set() or place.is_symlink():
            libc.renameat2(here, bytes(place), here, bytes(link), exchange)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def race(folder: Path, rounds: int) -> tuple[int, int]:
    """How often something outside was read or written, and how often a call went through."""
    root, outside = folder / "work", folder / "outside"
    (root / "place").mkdir(parents=True)
    outside.mkdir()
    for name in ("file", "victim"):
        (outside / name).write_text("outside")
        (root / "place" / name).write_text("inside")
    workspace = LocalWorkspace(root=str(root), files=str(folder / "files"))
    path, victim = str(root / "place" / "file"), str(root / "place" / "victim")
    escapes = done = 0
    with swapping(root / "place", outside):
        for number in range(rounds * 50):
            if number >= rounds and done:  # the swapping thread may have been asleep all along
                break
            new, moved = f"{path}-{number}", f"{path}-{number}-moved"
            pinned = workspace.pinned({name: name for name in (path, victim, new, moved)})
            try:
                escapes += pinned.load(path).data == b"outside"
                done += 1
                await pinned.write(path, b"inside")
                await pinned.remove(victim)
                await pinned.write(victim, b"inside")
                await pinned.write(new, b"new", new=True)
                await pinned.move(new, moved)
            except OSError:
                continue
        escapes += await race_searches(workspace, root / "place", rounds // 20)
    escapes += (outside / "file").read_text() != "outside"
    escapes += sorted(os.listdir(outside)) != ["file", "victim"]
    await workspace.aclose()
    return escapes, done


async def race_searches(workspace: LocalWorkspace, place: Path, rounds: int) -> int:
    """How often a search, of the place or of all that is around it, showed something outside."""
    escapes = found = 0
    pinned = workspace.pinned({str(place): str(place)})
    for number in range(rounds * 20):
        if number >= rounds and found:
            break
        where = str(place if number % 2 else place.parent)
        shown = await pinned.search(
            ["--no-filename", "outside|inside", where], seconds=20, limit=10_000
        )
        escapes += b"outside" in shown.lines
        found += b"inside" in shown.lines
    return escapes


if __name__ == "__main__":
    found = asyncio.run(race(Path(tempfile.mkdtemp(prefix="trimtab-race-")), int(sys.argv[1])))
    print(f"{found[0]} escapes in {sys.argv[1]} rounds")
    sys.exit(1 if found[0] else 0)
