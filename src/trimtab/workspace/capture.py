"""Captures a command's output within bounds: a little in memory, the rest in a file."""

import errno
import os
from typing import Protocol

from trimtab.config.files import make_private_dir, open_private
from trimtab.contracts.errors import ConfigurationError

IN_MEMORY = 256 * 1024
TAIL = 4096
MAX_SIZE = 9 << 27
"""Output beyond this (1.1 GiB) is not kept."""


def open_saved(path: str) -> int:
    """Open a new file, for the owner alone, in the session's folder. Raises `OSError`."""
    try:
        make_private_dir(os.path.dirname(path))
    except ConfigurationError as error:
        raise OSError(errno.EIO, error.message) from None
    return open_private(path, os.O_RDWR | os.O_TRUNC)


class Unread(Protocol):
    """Output of a command, read once from front to back."""

    lost: int

    @property
    def kept(self) -> int:
        """The number of bytes kept, read or not."""
        ...

    def take(self, limit: int) -> tuple[bytes, int, str | None]:
        """Return unread output: its beginning, its size, and the file if there is more of it."""
        ...

    def piece(self, start: int, size: int) -> bytes:
        """Return a part of the output, read or not, without counting it as read."""
        ...

    def has_unread(self) -> bool: ...

    def last_line(self) -> bytes:
        """Return the text after the last newline, where a prompt would be."""
        ...

    def close(self) -> None: ...


class Capture:
    """Output that arrives through a pipe."""

    def __init__(self, path: str, max_size: int = MAX_SIZE) -> None:
        self.path = path
        self.kept = 0
        self.lost = 0
        self._max_size = max_size
        self._read = 0
        self._memory = bytearray()
        self._file: int | None = None
        self._spilled = False
        self._tail = b""

    def add(self, chunk: bytes) -> None:
        if not self._spilled and self.kept + len(chunk) <= IN_MEMORY:
            self._memory += chunk
            self.kept += len(chunk)
            return
        self._tail = (self._tail + chunk[-TAIL:])[-TAIL:]
        if (self._spilled or self._spill()) and not self.is_full():
            self._write(chunk)
        else:
            self.lost += len(chunk)

    def is_full(self) -> bool:
        return self.kept >= self._max_size

    def has_unread(self) -> bool:
        return self._read < self.kept

    def take(self, limit: int) -> tuple[bytes, int, str | None]:
        start, size = self._read, self.kept - self._read
        self._read = self.kept
        if size <= limit:
            return self.piece(start, size), size, None
        saved = self._spilled or self._spill()
        return self.piece(start, limit), size, self.path if saved else None

    def last_line(self) -> bytes:
        return (self._tail or bytes(self._memory[-TAIL:])).rsplit(b"\n", 1)[-1]

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def piece(self, start: int, size: int) -> bytes:
        if not self._spilled:
            return bytes(self._memory[start : start + size])
        if self._file is not None:
            return os.pread(self._file, size, start)
        return read_piece(self.path, start, size)

    def _spill(self) -> bool:
        """Move the output to a file; return False if that fails."""
        try:
            self._file = open_saved(self.path)
        except OSError:
            return False
        self._spilled = True
        buffered, self._memory, self.kept = self._memory, bytearray(), 0
        self._write(buffered)
        return True

    def _write(self, data: bytes | bytearray) -> None:
        assert self._file is not None
        rest = memoryview(data)
        try:
            while rest:
                count = os.write(self._file, rest)
                self.kept += count
                rest = rest[count:]
        except OSError:  # the disk is full: lost bytes are counted and reported
            self.lost += len(rest)


class LogFile:
    """Output that a detached command writes to a file by itself."""

    lost = 0

    def __init__(self, path: str) -> None:
        self.path = path
        self._read = 0

    @property
    def kept(self) -> int:
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def has_unread(self) -> bool:
        return self._read < self.kept

    def take(self, limit: int) -> tuple[bytes, int, str | None]:
        start = min(self._read, self.kept)
        size = self.kept - start
        self._read = start + size
        piece = read_piece(self.path, start, min(size, limit)) if size else b""
        return piece, size, self.path if size > limit else None

    def piece(self, start: int, size: int) -> bytes:
        return read_piece(self.path, start, size)

    def last_line(self) -> bytes:
        return b""

    def close(self) -> None:
        """Do nothing: the file is not kept open."""


def read_piece(path: str, start: int, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(size)
    except FileNotFoundError:
        return b""
