"""Packs many small contents into one file, since creating a file for each is slow."""

import os

from trimtab.config.files import open_private
from trimtab.workspace.files import write_all

BUFFERED = 1 << 20
SUFFIX = ".pack"
LISTED = ".packed"

Packed = tuple[str, int, int]
"""The file of a content, its offset and its length."""


class Pack:
    """A file that only one process writes, with a list of its contents next to it."""

    def __init__(self, folder: str) -> None:
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}{SUFFIX}"
        flags = os.O_WRONLY | os.O_EXCL
        path = os.path.join(folder, self.name)
        self._data = open_private(path, flags)
        self._list = open_private(path.removesuffix(SUFFIX) + LISTED, flags)
        self._size = 0
        self._contents = bytearray()
        self._lines = bytearray()

    def add(self, digest: str, data: bytes) -> Packed:
        position = self.name, self._size, len(data)
        self._contents += data
        self._lines += f"{digest} {self._size} {len(data)}\n".encode()
        self._size += len(data)
        if len(self._contents) > BUFFERED:
            self.flush()
        return position

    def flush(self) -> None:
        """Write buffered contents, then the list, which must never name missing contents."""
        contents, self._contents = self._contents, bytearray()
        lines, self._lines = self._lines, bytearray()
        if lines:
            write_all(self._data, bytes(contents))
            write_all(self._list, bytes(lines))

    def close(self) -> None:
        os.close(self._data)
        os.close(self._list)


def read_lists(folder: str, names: list[str]) -> dict[str, Packed]:
    """Return the positions of all packed contents in a folder. A torn last line is ignored."""
    found: dict[str, Packed] = {}
    for name in names:
        if not name.endswith(LISTED):
            continue
        pack = name.removesuffix(LISTED) + SUFFIX
        with open(os.path.join(folder, name), "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        for line in lines:
            digest, offset, length = line.decode().split()
            found[digest] = pack, int(offset), int(length)
    return found


def read_packed(folder: str, position: Packed) -> bytes:
    name, offset, length = position
    fd = os.open(os.path.join(folder, name), os.O_RDONLY)
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)
