"""Opens a path without following symlinks, so that it is the file that was checked."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OPENAT2, NO_LINKS = 437, 0b110
"""RESOLVE_NO_MAGICLINKS and RESOLVE_NO_SYMLINKS."""
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def open_exact(path: str, flags: int) -> int:
    """Open an absolute path; a symlink in it raises `ELOOP`. Raises `OSError`."""
    try:
        return open_at_once(path, flags)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel, or a seccomp filter
            raise
    return open_step_by_step(path, flags)


def open_at_once(path: str, flags: int) -> int:
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, NO_LINKS)
    try:
        call = libc.syscall
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path) from None
    if "\0" in path or os.uname().sysname != "Linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
    fd: int = call(OPENAT2, -100, os.fsencode(path), how, len(how))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


def open_step_by_step(path: str, flags: int) -> int:
    """Do the same by opening each folder on the way."""
    *folders, last = [part for part in path.split(os.sep) if part] or ["."]
    at = os.open(os.sep, FOLDER)
    try:
        for name in folders:
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)


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
