"""Restores a path to an earlier state."""

import errno
import os
import stat
from contextlib import suppress

from trimtab.contracts.changes import FileState
from trimtab.undo.blobs import BlobStore
from trimtab.workspace.files import temporary_name, write, write_all


def restore(path: str, state: FileState, current: FileState, store: BlobStore) -> None:
    """Change a path from its `current` state to `state`. Raises `OSError`.

    A directory stays accessible until its files are restored; `finish` sets its mode.
    """
    if state.kind == "absent":
        remove(path, current)
    elif state.kind == "directory":
        _make_directory(path, state, current)
    elif state.kind == "symlink":
        _clear(path, current)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _link(path, store.get(state.digest))
    else:
        write_file(path, store.get(state.digest), state.mode, current)


def finish(path: str, state: FileState) -> None:
    """Set the mode of a directory whose contents are restored."""
    with suppress(FileNotFoundError):
        os.chmod(path, state.mode)


def write_file(path: str, data: bytes, mode: int, current: FileState) -> None:
    """Write a file, keeping owner and attributes of an existing one."""
    if current.kind == "file":
        write(path, data)
    else:
        _clear(path, current)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _create(path, data)
    if stat.S_IMODE(os.lstat(path).st_mode) != mode:
        os.chmod(path, mode)


def remove(path: str, current: FileState) -> None:
    """Remove a file, a link or an empty directory."""
    with suppress(FileNotFoundError):
        if current.kind == "directory":
            os.rmdir(path)
        elif current.kind != "absent":
            os.unlink(path)


def _clear(path: str, current: FileState) -> None:
    """Remove what is there, to create something of another kind."""
    if current.kind != "absent":
        remove(path, current)


def _make_directory(path: str, state: FileState, current: FileState) -> None:
    if current.kind != "directory":
        _clear(path, current)
        os.makedirs(path, exist_ok=True)
    os.chmod(path, state.mode | stat.S_IRWXU)


def _link(path: str, target: bytes) -> None:
    temporary = temporary_name(path)
    os.symlink(target, os.fsencode(temporary))
    os.rename(temporary, path)


def _create(path: str, data: bytes) -> None:
    """Create a file, unless somebody has just created it."""
    temporary = temporary_name(path)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            write_all(fd, data)
        finally:
            os.close(fd)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError as error:  # no hard links on this file system
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
            os.rename(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
