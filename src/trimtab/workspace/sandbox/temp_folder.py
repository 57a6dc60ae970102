"""The temp folder of a fenced command: how much it holds, and its removal."""

import errno
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_PATH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
BLOCK = 512


def measure_held(folder: str, pids: Iterable[int], max_entries: int) -> tuple[int, int]:
    """Return the bytes and the number of files that a command holds in its temp folder.

    Removed files that are still open or mapped count, too, unless the process hides them.
    Counting ends at `max_entries`.
    """
    held: dict[int, int] = {}
    device = os.stat(folder).st_dev
    folders = [folder]
    for path in folders:  # grows on the way
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    held[found.st_ino] = found.st_blocks * BLOCK
                    if stat.S_ISDIR(found.st_mode):
                        folders.append(entry.path)
                if len(held) >= max_entries:
                    return sum(held.values()), len(held)
    for pid in pids:
        with suppress(OSError):  # it has ended, or is not ours to look into
            held |= find_open(pid, device)
            held |= find_mapped(pid, folder)
    return sum(held.values()), len(held)


def find_open(pid: int, device: int) -> dict[int, int]:
    """Return the sizes of removed files that a process has open, by inode."""
    found: dict[int, int] = {}
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            about = os.stat(f"{folder}/{name}")
            if stat.S_ISREG(about.st_mode) and not about.st_nlink and about.st_dev == device:
                found[about.st_ino] = about.st_blocks * BLOCK
    return found


def find_mapped(pid: int, folder: str) -> dict[int, int]:
    """Return the sizes of removed files of a folder that a process has mapped, by inode."""
    found: dict[int, int] = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.endswith(" (deleted)\n") and f" {folder}/" in line:
                first, _, last = line.split()[0].partition("-")
                found[int(line.split()[4])] = int(last, 16) - int(first, 16)
    return found


def is_empty(path: str) -> bool:
    """Return True for a folder without entries, False for anything else."""
    try:
        folder = os.open(path, OPEN_FOLDER)
    except OSError:
        return False
    try:
        return not os.listdir(folder)
    finally:
        os.close(folder)


def remove_folder(path: str) -> None:
    """Remove a folder, whatever a command did to it; what cannot be removed stays.

    Folders below are moved up, one level at a time: they may be nested deeper than paths are
    long, and closed to their owner.
    """
    with suppress(OSError):
        top = os.open(path, OPEN_FOLDER)
        try:
            empty(top)
        finally:
            os.close(top)
        os.rmdir(path)


def empty(top: int) -> None:
    numbers = itertools.count()
    while names := os.listdir(top):
        for name in names:
            if is_folder(name, top):
                unpack(name, top, numbers)
                os.rmdir(name, dir_fd=top)
            else:
                os.unlink(name, dir_fd=top)


def unpack(name: str, top: int, numbers: Iterator[int]) -> None:
    """Remove the files in a folder, and move its folders up."""
    unlock(name, top)
    folder = os.open(name, OPEN_FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            if is_folder(inner, folder):
                unlock(inner, folder)
                move_up(inner, folder, top, numbers)
            else:
                os.unlink(inner, dir_fd=folder)
    finally:
        os.close(folder)


def move_up(name: str, folder: int, top: int, numbers: Iterator[int]) -> None:
    """Move a folder to the top, with a number for its name that is not taken."""
    for number in numbers:
        try:
            os.rename(name, str(number), src_dir_fd=folder, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
        else:
            return


def is_folder(name: str, folder: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def unlock(name: str, folder: int) -> None:
    """Let the owner of a folder into it; a link that has taken its place is not followed."""
    fd = os.open(name, OPEN_PATH, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{fd}" if os.path.isdir("/proc/self/fd") else fd, 0o700)
    finally:
        os.close(fd)
