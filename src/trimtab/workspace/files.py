"""Reads, writes, moves and removes files without losing a byte or an attribute."""

import errno
import os
import stat
import time
from contextlib import suppress
from functools import cache

from trimtab.contracts.workspace import (
    FileContent,
    Lines,
    Listing,
    PathInfo,
    StaleFile,
    Stamp,
)
from trimtab.workspace.checked_open import anchored, open_exact

MAX_SIZE = 512 * 1024 * 1024
CHUNK = 1024 * 1024
ATTEMPTS = 3
TIMEOUT = 10.0
# If the directory or file system does not allow replacing the file, it is overwritten instead.
IN_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.ENOTSUP, errno.EXDEV}
SPECIAL = {
    stat.S_IFIFO: "a FIFO, which could block",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def inspect(path: str) -> PathInfo:
    """Return what is at a path, following symlinks, without opening it."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return PathInfo(kind="missing")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid path"
        return PathInfo(kind="other", reason=f"not accessible ({reason})")
    if found.st_dev == proc_device():
        return PathInfo(kind="other", reason="part of the kernel's /proc, not a file")
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        return PathInfo(kind="directory")
    if kind == stat.S_IFREG:
        return PathInfo(kind="file", size=found.st_size)
    return PathInfo(kind="other", reason=SPECIAL.get(kind, "not a regular file"))


@cache
def proc_device() -> int | None:
    """Return the number of the device that /proc is; None where there is none."""
    try:
        return os.stat("/proc/self").st_dev
    except OSError:
        return None


def list_names(path: str, limit: int) -> Listing:
    fd = open_exact(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        names = sorted(os.listdir(fd))
    finally:
        os.close(fd)
    shown = tuple(name.encode("utf-8", "replace").decode() for name in names[:limit])
    return Listing(names=shown, total=len(names))


def load(path: str) -> FileContent:
    """Read a regular file; read it again if it changes meanwhile."""
    fd = open_regular(path)
    try:
        for _ in range(ATTEMPTS):
            before = stamp_of(os.fstat(fd))
            if before[2] > MAX_SIZE:
                limit = f"The file is larger than {MAX_SIZE >> 20} MB: use a command for it"
                raise OSError(errno.EFBIG, limit, path)
            os.lseek(fd, 0, os.SEEK_SET)
            data = read_all(fd, before[2])
            if stamp_of(os.fstat(fd)) == before:
                break
        return FileContent(data=data, stamp=before)
    finally:
        os.close(fd)


def open_regular(path: str) -> int:
    """Open for reading. Checks after opening, since a FIFO may have replaced the file."""
    fd = open_exact(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return fd


def read_all(fd: int, size: int) -> bytes:
    first = os.read(fd, size + 1)
    if len(first) <= size and not (rest := os.read(fd, CHUNK)):
        return first
    parts = [first, rest] if len(first) <= size else [first]
    while part := os.read(fd, CHUNK):
        parts.append(part)
    return b"".join(parts)


def read_lines(path: str, first: int, last: int | None, limit: int) -> Lines:
    """Read lines of a file of any size, as a stream."""
    fd = open_regular(path)
    skip, wanted = first - 1, None if last is None else last - first + 1
    kept = bytearray()
    deadline = time.monotonic() + TIMEOUT
    try:
        while chunk := os.read(fd, CHUNK):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    errno.ETIMEDOUT, "The file is too large to find the lines in time"
                )
            count = chunk.count(b"\n") if skip else 0
            if skip and count < skip:
                skip -= count
                continue
            kept += chunk[after_newlines(chunk, skip) :]
            skip = 0
            if wanted is not None and kept.count(b"\n") >= wanted:
                return Lines(data=bytes(kept[: after_newlines(kept, wanted)]), complete=True)
            if len(kept) > limit:
                return Lines(data=bytes(kept[:limit]), complete=False)
    finally:
        os.close(fd)
    return Lines(data=bytes(kept), complete=True)


def after_newlines(data: bytes | bytearray, count: int) -> int:
    """Return the index after the given number of newlines."""
    at = 0
    for _ in range(count):
        at = data.find(b"\n", at) + 1
    return at


def write(path: str, data: bytes, *, new: bool = False, stamp: Stamp | None = None) -> None:
    """Create or replace the file at a path without symlinks; see the workspace contract."""
    with anchored(path) as target:
        write_anchored(target, data, new=new, stamp=stamp)


def write_anchored(target: str, data: bytes, *, new: bool, stamp: Stamp | None) -> None:
    found = None
    if not new:
        try:
            found = os.stat(target, follow_symlinks=False)
        except FileNotFoundError:
            if stamp is not None:
                raise StaleFile(errno.ESTALE, "The file is gone", target) from None
    if found is None:
        create(target, data, new)
        return
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", target)
    if stamp is not None and stamp_of(found) != stamp:
        raise StaleFile(errno.ESTALE, "The file has changed", target)
    if found.st_nlink > 1 or not replace(target, data, found):
        overwrite(target, data)


def create(target: str, data: bytes, new: bool) -> None:
    """Create a file atomically."""
    temporary = temporary_name(target)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            write_all(fd, data)
        finally:
            os.close(fd)
        if new:
            link(temporary, target)
        else:
            os.rename(temporary, target)
    finally:
        remove(temporary)


def link(temporary: str, target: str) -> None:
    """Name a file unless the target exists, also on file systems without hard links."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in IN_PLACE:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(temporary, target)


def replace(target: str, data: bytes, found: os.stat_result) -> bool:
    """Replace a file by a new one with the same attributes; return False if that is impossible."""
    temporary = temporary_name(target)
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in IN_PLACE:
            return False
        raise
    try:
        try:
            write_all(fd, data)
            copy_attributes(target, fd, found)
        finally:
            os.close(fd)
        if stamp_of(os.stat(target, follow_symlinks=False)) != stamp_of(found):
            raise StaleFile(errno.ESTALE, "The file has changed", target)
        os.rename(temporary, target)
    except OSError as error:
        if error.errno in IN_PLACE:
            return False
        raise
    finally:
        remove(temporary)
    return True


def copy_attributes(target: str, fd: int, found: os.stat_result) -> None:
    """Copy owner, extended attributes (including access lists and labels), then mode."""
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    if hasattr(os, "listxattr"):
        try:
            names = os.listxattr(target, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            names = []
        for name in names:
            value = os.getxattr(target, name, follow_symlinks=False)
            os.setxattr(fd, name, value)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))


def overwrite(target: str, data: bytes) -> None:
    """Overwrite a file in place. Space is allocated first, so that a full disk changes nothing."""
    fd = os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if data and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(fd, 0, len(data))
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise
        write_all(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def temporary_name(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}.tmp")


def remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def stamp_of(found: os.stat_result) -> Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def remove_file(path: str) -> None:
    """Delete a regular file at a path without symlinks; refuse anything else."""
    os.lstat(path)  # before `anchored` would create its folder
    with anchored(path) as target:
        require_regular(target, path)
        os.unlink(target)


def move_file(path: str, goal: str) -> None:
    """Move a regular file, never over an existing one; parent directories are created.

    Neither path may contain a symlink.
    """
    require_regular(path, path)
    with anchored(path) as source, anchored(goal) as target:
        require_regular(source, path)
        try:
            os.link(source, target, follow_symlinks=False)  # a rename would replace the target
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), goal) from None
        except OSError:
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), goal) from None
            os.rename(source, target)
        else:
            os.unlink(source)


def require_regular(path: str, name: str) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", name)
