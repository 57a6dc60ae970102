"""Many small contents in one file: making a file for each would take most of the time."""

import os

from trimtab.config.files import open_private
from trimtab.workspace.files import write_all

BUFFERED = 1 << 20
SUFFIX = ".pack"
LISTED = ".packed"

Packed = tuple[str, int, int]
"""The file a content is in, where it begins, how long it is."""


class Pack:
    """A file that is only appended to, by one process; beside it a list of what is where."""

    def __init__(self, folder: str) -> None:
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}{SUFFIX}"
        flags = os.O_WRONLY | os.O_EXCL | os.O_APPEND
        path = os.path.join(folder, self.name)
        self._data = open_private(path, flags)
        self._list = open_private(path.removesuffix(SUFFIX) + LISTED, flags)
        self._size = 0
        self._contents = bytearray()
        self._lines = bytearray()

    def add(self, digest: str, data: bytes) -> Packed:
        place = self.name, self._size, len(data)
        self._contents += data
        self._lines += f"{digest} {self._size} {len(data)}\n".encode()
        self._size += len(data)
        if len(self._contents) > BUFFERED:
            self.flush()
        return place

    def flush(self) -> None:
        """Have everything in the file. The list comes second: it never names what is not there."""
        contents, self._contents = self._contents, bytearray()
        lines, self._lines = self._lines, bytearray()
        if lines:
            write_all(self._data, bytes(contents))
            write_all(self._list, bytes(lines))

    def close(self) -> None:
        os.close(self._data)
        os.close(self._list)


def read_lists(folder: str, names: list[str]) -> dict[str, Packed]:
    """Where everything is that was ever packed in a folder. A torn last line never happened."""
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


def read_packed(folder: str, place: Packed) -> bytes:
    name, offset, length = place
    fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)
