"""The blob store of a session: file contents kept outside the workspace, by their hash."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from trimtab.config.files import make_private_dir, open_private
from trimtab.contracts.changes import ABSENT, FileState
from trimtab.contracts.errors import TrimtabError
from trimtab.undo.packs import (
    Pack,
    Packed,
    read_lists,
    read_packed,
)
from trimtab.workspace.files import read_all, write_all
from trimtab.workspace.walk import Key

MAX_SIZE = 32 * 1024 * 1024
"""A larger file is kept only if the file system can clone it."""
CLONE_FROM = 1024 * 1024
PACK_BELOW = 256 * 1024
FICLONE = 0x40049409
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Never waits for a pipe, nor follows a link, that has just taken the place of a file."""
CAPACITY = 1024 * 1024 * 1024
"""The limit of bytes kept per session."""


class BlobStore:
    """The blobs of a session. Blobs never change; equal contents are kept once."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._known: set[str] = set()
        self._packed: dict[str, Packed] = {}
        self._pack: Pack | None = None
        self._size = 0
        self._opened = False

    def path(self, digest: str) -> str:
        return os.path.join(self.folder, digest)

    def put(self, data: bytes) -> str:
        """Keep bytes and return their digest. Raises `OSError`."""
        digest = digest_of(data)
        if not self._has(digest):
            self._write(digest, data)
        return digest

    def get(self, digest: str) -> bytes:
        """Return kept bytes, verified. Raises `OSError` if they are gone or damaged."""
        self._open()
        if digest in self._packed:
            data = read_packed(self.folder, self._packed[digest])
        else:
            with open(self.path(digest), "rb") as file:
                data = file.read()
        if digest_of(data) != digest:
            raise OSError(f"The kept copy {digest[:12]} is damaged")
        return data

    def keep(self, path: str, max_size: int = MAX_SIZE) -> FileState:
        """Return the state of a path; keep its content if there is room. Follows no links."""
        try:
            found = os.lstat(path)
            kind = stat.S_IFMT(found.st_mode)
            if kind == stat.S_IFDIR:
                return FileState(kind="directory", mode=stat.S_IMODE(found.st_mode))
            if kind == stat.S_IFLNK:
                return self._keep_link(os.fsencode(os.readlink(path)))
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        if kind != stat.S_IFREG:
            return FileState(kind="file", mode=found.st_mode)
        return self._keep_file(path, found, max_size)

    def _keep_link(self, target: bytes) -> FileState:
        try:
            return FileState(kind="symlink", digest=self.put(target))
        except OSError:
            return FileState(kind="symlink")

    def keep_many(self, rows: Iterable[tuple[str, Key]]) -> Iterator[tuple[str, FileState]]:
        """Do the same as `keep` for a tree that has just been listed. Call `flush` at the end."""
        for path, key in rows:
            mode, size = key[:2]
            try:
                if size <= PACK_BELOW and stat.S_ISREG(mode) and self._has_room(size):
                    yield path, self._pack_file(path, mode, size)
                else:
                    yield path, self.keep(path)
            except OSError:
                yield path, unkept_state(key)

    def flush(self) -> None:
        """Write buffered contents to the file system. Raises `OSError`."""
        if self._pack is not None:
            self._pack.flush()

    def close(self) -> None:
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    def _pack_file(self, path: str, mode: int, size: int) -> FileState:
        try:
            fd = os.open(path, READ)
        except OSError:
            return self.keep(path)
        try:
            data = os.read(fd, size + 1)
        finally:
            os.close(fd)
        if len(data) != size:
            return self.keep(path)
        digest = digest_of(data)
        if digest not in self._known:
            if self._pack is None:
                self._pack = Pack(self.folder)
            self._packed[digest] = self._pack.add(digest, data)
            self._known.add(digest)
            self._size += size
        return FileState(kind="file", mode=stat.S_IMODE(mode), digest=digest, size=size)

    def _keep_file(self, path: str, found: os.stat_result, max_size: int) -> FileState:
        mode, digest, size = stat.S_IMODE(found.st_mode), "", found.st_size
        try:
            fd = os.open(path, READ)
        except OSError:  # unreadable, or just replaced
            return FileState(kind="file", mode=mode, size=size)
        try:
            if size > CLONE_FROM and (digest := self._clone(fd)):
                return FileState(kind="file", mode=mode, digest=digest, size=size)
            if size <= max_size and self._has_room(size):
                data = read_all(fd, size)
                digest, size = self.put(data), len(data)
        except OSError:  # no room: the missing digest tells the caller
            digest = ""
        finally:
            os.close(fd)
        return FileState(kind="file", mode=mode, digest=digest, size=size)

    def _clone(self, source: int) -> str:
        """Keep a file by sharing its blocks; return an empty string if that is not possible."""
        self._open()
        temporary, fd = self._create_temporary()
        try:
            fcntl.ioctl(fd, FICLONE, source)
            digest = digest_of_open(fd)
            os.rename(temporary, self.path(digest))
        except OSError:
            os.unlink(temporary)
            return ""
        finally:
            os.close(fd)
        self._known.add(digest)
        return digest

    def _has_room(self, size: int) -> bool:
        self._open()
        return self._size + size <= CAPACITY

    def _has(self, digest: str) -> bool:
        self._open()
        return digest in self._known

    def _open(self) -> None:
        if not self._opened:
            try:
                make_private_dir(self.folder)
            except TrimtabError as error:
                raise OSError(errno.EIO, error.message) from error
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    self._known.add(entry.name)
                    self._size += entry.stat(follow_symlinks=False).st_size
            self._packed = read_lists(self.folder, list(self._known))
            self._known.update(self._packed)
            self._opened = True

    def _create_temporary(self) -> tuple[str, int]:
        path = self.path(f".{os.getpid()}-{os.urandom(6).hex()}.tmp")
        return path, open_private(path, os.O_RDWR | os.O_EXCL)

    def _write(self, digest: str, data: bytes) -> None:
        temporary, fd = self._create_temporary()
        try:
            write_all(fd, data)
            os.rename(temporary, self.path(digest))
        except BaseException:
            os.unlink(temporary)
            raise
        finally:
            os.close(fd)
        self._known.add(digest)
        self._size += len(data)


def unkept_state(key: Key) -> FileState:
    """Return the state of a path whose content is not kept."""
    mode, size = key[:2]
    if stat.S_ISDIR(mode):
        return FileState(kind="directory", mode=stat.S_IMODE(mode))
    if stat.S_ISLNK(mode):
        return FileState(kind="symlink")
    return FileState(kind="file", mode=stat.S_IMODE(mode), size=size)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of_open(fd: int) -> str:
    hasher = hashlib.sha256()
    os.lseek(fd, 0, os.SEEK_SET)
    while chunk := os.read(fd, CLONE_FROM):
        hasher.update(chunk)
    return hasher.hexdigest()
