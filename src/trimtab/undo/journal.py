"""Stores a snapshot on disk, so that the changes of a killed session can be found."""

import os
from collections.abc import Iterable, Iterator

import msgspec

from trimtab.config.files import open_private
from trimtab.contracts.changes import FileState
from trimtab.workspace.files import write_all
from trimtab.workspace.walk import Key

NAME = "snapshot.journal"
PIECE = 20_000

Known = tuple[bytes, Key | None, FileState | None]
"""A path with its key and state; None if it is gone."""


class Journal:
    """An append-only file: the root, then paths with their states, of which the last counts."""

    def __init__(self, path: str, root: str) -> None:
        self._path = path
        self._root = root
        self._fd: int | None = None

    def add(self, known: Iterable[tuple[str, Key | None, FileState | None]]) -> None:
        """Append the known states. Raises `OSError`."""
        rows: list[Known] = [(os.fsencode(path), key, state) for path, key, state in known]
        if self._fd is None:
            self._fd = self._open()
        for at in range(0, len(rows), PIECE):
            self._write(msgspec.msgpack.encode(rows[at : at + PIECE]))

    def read(self) -> Iterator[Known]:
        """Yield the entries for this root; a torn end is ignored."""
        frames = _frames(self._path)
        if next(frames, b"") != os.fsencode(self._root):
            return
        for frame in frames:
            yield from msgspec.msgpack.decode(frame, type=list[Known])

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        """Continue a journal of this root, or start a new one."""
        begun = next(_frames(self._path), None) == os.fsencode(self._root)
        flags = os.O_WRONLY | os.O_APPEND
        fd = open_private(self._path, flags if begun else flags | os.O_TRUNC)
        if not begun:
            self._fd = fd
            self._write(os.fsencode(self._root))
        return fd

    def _write(self, frame: bytes) -> None:
        assert self._fd is not None
        write_all(self._fd, len(frame).to_bytes(8, "big") + frame)


def read_root(path: str) -> str:
    """Return the root of a journal; empty if it cannot be read."""
    try:
        return os.fsdecode(next(_frames(path), b""))
    except OSError:
        return ""


def _frames(path: str) -> Iterator[bytes]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below, at the end of the iteration
    except FileNotFoundError:
        return
    with file:
        while len(head := file.read(8)) == 8:
            length = int.from_bytes(head, "big")
            frame = file.read(length) if length < 1 << 32 else b""
            if len(frame) != length:
                return
            yield frame
