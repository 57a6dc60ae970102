"""Reads and atomically replaces small files: a reader sees the old bytes or the new ones."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from trimtab.contracts.errors import ConfigurationError, StorageError, TrimtabError

_LOCK_TIMEOUT = 10.0
_NO_FLOCK = frozenset((errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL))


def read_regular(path: str, limit: int = 16 * 1024 * 1024) -> bytes:
    """Return the first bytes of a regular file. Raises `OSError` for anything else.

    Opening a FIFO would wait for a writer forever, and a device may never end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        chunks: list[bytes] = []
        while limit > 0 and (chunk := os.read(fd, limit)):
            chunks.append(chunk)
            limit -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def make_private_dir(path: str) -> None:
    """Create a folder and its missing parents, for the owner alone. Existing ones are kept."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        make_private_dir(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if os.path.isdir(path):
            return
        raise ConfigurationError(f"{path} is not a folder: move it away and try again.") from None
    except OSError as error:
        raise cannot("create the folder", path, error) from error
    os.chmod(path, 0o700)  # the umask may have removed even the owner's bits


def open_private(path: str, flags: int) -> int:
    """Open a file for the owner alone, whatever the umask; create it if it does not exist."""
    fd = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # the umask may have removed even the owner's bits
    except OSError:
        os.close(fd)
        raise
    return fd


def replace_file(path: str, data: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Replace a file atomically and durably. For a symbolic link, its target is replaced."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        write_new_file(temporary, data, mode, durable=True)
        try:
            os.replace(temporary, target)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_dir(folder)
    except OSError as error:
        raise cannot("write", path, error) from error


def update_file(path: str, change: Callable[[bytes | None], bytes]) -> None:
    """Read a file (None if there is none), change its bytes and replace it under a lock.

    Processes take turns by a lock on `<file>.lock`, so that no update is lost; `change` must be
    quick.
    """
    target = os.path.realpath(path)
    with _locked(target + ".lock"):
        try:
            before = read_regular(target)
        except FileNotFoundError:
            before = None
        except OSError as error:
            raise cannot("read", path, error) from error
        after = change(before)
        if after != before:
            replace_file(target, after, _mode_of(target))


def write_new_file(
    path: str, data: bytes | Iterable[bytes], mode: int = 0o600, *, durable: bool
) -> None:
    """Create a file that must not exist yet. A failed write leaves no file behind."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, mode)
        for chunk in (data,) if isinstance(data, bytes) else data:
            write_all(fd, chunk)
        if durable:
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_dir(path: str) -> None:
    """Make the names in a folder survive a power cut, if the file system can."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(fd)


def cannot(action: str, path: str, error: OSError) -> TrimtabError:
    """Return an error that says what failed with a file, and what to do about it.

    A wrong path is a configuration error; everything else, such as a full disk, is not.
    """
    advice = _ADVICE.get(error.errno or 0, "check the path and try again")
    reason = error.strerror or str(error)
    kind = ConfigurationError if error.errno in _WRONG_PATH else StorageError
    return kind(f"Cannot {action} {path} ({reason}): {advice}.")


_WRONG_PATH = frozenset(
    (
        errno.EACCES,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
        errno.ETXTBSY,
        errno.EXDEV,
    )
)


_ADVICE = {
    errno.ENOSPC: "free some space on this disk, then try again",
    errno.EDQUOT: "your disk quota is used up; free some space, then try again",
    errno.EFBIG: "the file has reached the size limit of this process (ulimit -f); raise it",
    errno.EACCES: "give yourself access to it, or set COPILOT_HOME to a folder you own",
    errno.EPERM: "give yourself access to it, or set COPILOT_HOME to a folder you own",
    errno.EROFS: "the file system is read-only; set COPILOT_HOME to a folder you can write to",
    errno.EISDIR: "a folder is in the place of a file; move it away",
    errno.ENOTDIR: "a file is in the place of a folder; move it away",
    errno.EIO: "the disk reports an error; copy what you need to another disk and check this one",
}


def _mode_of(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return 0o600


@contextmanager
def _locked(lock: str) -> Iterator[None]:
    """Hold a lock file; the operating system releases it if the holder dies."""

    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise cannot("create the lock", lock, error) from error
    try:
        with suppress(PermissionError):  # created by another user of the same folder
            os.fchmod(fd, 0o600)
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigurationError(
                        f"Another process has held {lock} for {_LOCK_TIMEOUT:.0f} seconds: "
                        "end it and try again."
                    ) from None
                time.sleep(0.002)
            except OSError as error:
                if error.errno not in _NO_FLOCK:
                    raise cannot("lock", lock, error) from error
                fcntl.lockf(fd, fcntl.LOCK_EX)  # some network file systems only support this kind
                break
        yield
    finally:
        os.close(fd)


def format_json(value: Any) -> bytes:
    """Encode a value as indented JSON. Raises `ConfigurationError` for text JSON cannot hold."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2)
    except UnicodeEncodeError as error:
        text = ascii(error.object[:200])
        raise ConfigurationError(
            f"{text} is not valid UTF-8 and cannot be stored in a settings file; rename it."
        ) from None
