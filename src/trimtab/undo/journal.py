"""Keeps what a snapshot knows on disk, so that a killed session can still say what was there."""

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
"""A path and what is known of it; None when it is gone."""


class Journal:
    """An append-only file: the root first, then paths and what became of them, the last counts."""

    def __init__(self, path: str, root: str) -> None:
        self._path = path
        self._root = root
        self._fd: int | None = None

    def add(self, known: Iterable[tuple[str, Key | None, FileState | None]]) -> None:
        """Write down what is known now. Raises `OSError`."""
        rows: list[Known] = [(os.fsencode(path), key, state) for path, key, state in known]
        if self._fd is None:
            self._fd = self._open()
        for at in range(0, len(rows), PIECE):
            self._write(msgspec.msgpack.encode(rows[at : at + PIECE]))

    def read(self) -> Iterator[Known]:
        """Everything that was written for this root; a torn end never happened."""
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
        """Go on with a journal of this root and no other."""
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
    """The folder a journal is about; empty if it cannot be told."""
    try:
        return os.fsdecode(next(_frames(path), b""))
    except OSError:
        return ""


def _frames(path: str) -> Iterator[bytes]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below, when the reader has had enough
    except FileNotFoundError:
        return
    with file:
        while len(head := file.read(8)) == 8:
            length = int.from_bytes(head, "big")
            frame = file.read(length) if length < 1 << 32 else b""
            if len(frame) != length:
                return
            yield frame
