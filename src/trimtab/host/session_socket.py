"""The socket of a live session, by which other processes of the same user reach it."""

import asyncio
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from trimtab.runtime.live import LiveSession

NAME = "session.sock"
MAX_PATH = 100
"""The length in bytes of a path that every system can bind a socket to."""
BACKLOG = 64

Serve = Callable[[LiveSession, socket.socket], None]
"""Serves a client that has connected to a session's socket."""


class SessionSocket:
    """Listens in the folder of a session that this process hosts, until the session is closed.

    The file is for the owner alone, and the user of every connection is checked besides. A file
    that a killed process left is replaced: whoever opens a session holds its lease.
    """

    def __init__(self, live: LiveSession, serve: Serve) -> None:
        self._live = live
        self._serve = serve
        self._path = os.path.join(live.folder.path, NAME)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        try:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            with suppress(OSError):
                os.fchmod(self._listener.fileno(), 0o600)  # also before the file is there
            with short_path(live.folder.path) as folder:
                self._listener.bind(os.path.join(folder, NAME))
            os.chmod(self._path, 0o600)
            self._listener.listen(BACKLOG)
        except OSError:
            self._listener.close()
            raise
        self._inode = os.stat(self._path).st_ino
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the client is gone already
            return
        if find_user(connection) not in (os.geteuid(), None):
            connection.close()
            return
        connection.setblocking(False)
        self._serve(self._live, connection)

    def close(self) -> None:
        """Stop listening and remove the file, unless another process has replaced it."""
        if self._listener.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._listener.fileno())
        self._listener.close()
        with suppress(OSError):
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)


def listen(live: LiveSession, serve: Serve) -> None:
    """Listen on the session's socket; warn if that is not possible, since all else works."""
    try:
        live.on_close(SessionSocket(live, serve).close)
    except OSError as error:
        live.warn(
            "session_socket",
            f"Other processes cannot reach this session ({error.strerror or error}).",
        )


def connect(folder: str, seconds: float = 2.0) -> socket.socket:
    """Connect to the session in a folder. Raises `OSError` if no process listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        with short_path(folder) as short:
            connection.connect(os.path.join(short, NAME))
        if find_user(connection) not in (os.geteuid(), None):
            raise PermissionError("The socket belongs to another user")
    except BaseException:
        connection.close()
        raise
    connection.setblocking(False)
    return connection


@contextmanager
def short_path(folder: str) -> Iterator[str]:
    """Give a path of a folder that is short enough for a socket in it."""
    if len(os.fsencode(os.path.join(folder, NAME))) <= MAX_PATH:
        yield folder
    elif os.path.isdir("/proc/self/fd"):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
    else:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tt", dir="/tmp") as temporary:
            link = os.path.join(temporary, "s")
            os.symlink(folder, link)
            yield link


def find_user(connection: socket.socket) -> int | None:
    """Return the user id of the process at the other end; None if the system does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", found)[1])
    if sys.platform == "darwin":  # LOCAL_PEERCRED: version, then the user id
        return int(struct.unpack("2I", connection.getsockopt(0, 1, 8))[1])
    return None
