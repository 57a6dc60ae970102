"""The checkpoints of a session: summaries of its conversation, one file each, and their index."""

import os
import re

from trimtab.config.files import make_private_dir, replace_file
from trimtab.contracts.ids import timestamp

INDEX = "index.md"
HEADER = "# Checkpoints\n\n| # | Title | File | When |\n|---|---|---|---|\n"
COLUMNS = 4


def add_checkpoint(folder: str, title: str, text: str) -> tuple[int, str]:
    """Write a checkpoint; return its number and its path."""
    make_private_dir(folder)
    numbers = [name.partition("-")[0] for name in os.listdir(folder)]
    number = 1 + max((int(found) for found in numbers if found.isdecimal()), default=0)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "checkpoint"
    name = f"{number:03}-{slug}.md"
    path = os.path.join(folder, name)
    replace_file(path, text.encode("utf-8", "replace"))
    row = f"| {number} | {title.replace('|', ' ')} | {name} | {timestamp()} |\n"
    _write_index(folder, (_read_index(folder) or HEADER) + row)
    return number, path


def list_checkpoints(folder: str) -> list[str]:
    """Return the names of the files of checkpoints, the oldest first."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name != INDEX)


def read_titles(folder: str) -> dict[str, str]:
    """Return the titles of checkpoints by file name, from their index."""
    lines = _read_index(folder).splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    return {row[2]: row[1] for row in rows if len(row) == COLUMNS}


def keep_checkpoints(folder: str, count: int) -> int:
    """Remove all checkpoints after the first `count`; return how many are left."""
    names = list_checkpoints(folder)
    for name in names[max(0, count) :]:
        os.unlink(os.path.join(folder, name))
    kept = names[: max(0, count)]
    if len(kept) < len(names):
        removed = set(names) - set(kept)
        lines = _read_index(folder).splitlines(keepends=True)
        left = [line for line in lines if not any(f"| {name} |" in line for name in removed)]
        _write_index(folder, "".join(left))
    return len(kept)


def _read_index(folder: str) -> str:
    try:
        with open(os.path.join(folder, INDEX), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write_index(folder: str, text: str) -> None:
    replace_file(os.path.join(folder, INDEX), text.encode("utf-8", "replace"))
