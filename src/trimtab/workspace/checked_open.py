"""Opens a path without following symlinks, so that it is the file that was checked."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def open_exact(path: str, flags: int) -> int:
    """Open an absolute path without links; `ELOOP` if there is one now. Raises `OSError`.

    A descriptor for each folder on the way: `openat2` would do it in one call, but Python has none
    and `ctypes` takes longer to load than a hundred files to read.
    """
    *folders, last = [part for part in path.split(os.sep) if part] or ["."]
    at, name = os.open(os.sep, FOLDER), ""
    try:
        for name in folders:
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        name = last
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        number = errno.ELOOP if is_link(name, at) else error.errno or errno.EIO
        raise OSError(number, os.strerror(number), path) from None
    finally:
        os.close(at)


def is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False


@contextmanager
def anchored(path: str) -> Iterator[str]:
    """Yield a path to the file through a descriptor of its folder, which is created if missing.

    Operations on that path stay in that folder, even if folders are moved meanwhile.
    """
    folder, name = os.path.split(path)
    fd = open_folder(folder)
    try:
        through = f"/proc/self/fd/{fd}"
        yield os.path.join(through, name) if os.path.isdir(through) else path
    finally:
        os.close(fd)


def open_folder(path: str) -> int:
    try:
        return open_exact(path, FOLDER)
    except FileNotFoundError:
        above, name = os.path.split(path)
    fd = open_folder(above)
    try:
        with suppress(FileExistsError):  # somebody else was faster
            os.mkdir(name, dir_fd=fd)
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=fd)
    finally:
        os.close(fd)
