"""The prompts of all sessions, newest last, in one file that several processes append to."""

import fcntl
import os
import time
from collections.abc import Callable, Sequence

import msgspec

from trimtab.config.files import make_private_dir
from trimtab.contracts.errors import TrimtabError
from trimtab.contracts.json_text import decode_json, encode_json
from trimtab.contracts.text import count

KEPT = 5000
"""Entries that are read back."""
LARGEST = 8 << 20


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt, the folder it was typed in, and when; the paths of its images, in order."""

    text: str
    cwd: str = ""
    time: float = 0.0
    images: tuple[str, ...] = ()


class History:
    """Reads the file when first asked; a damaged line is left out and counted in `damaged`.

    The file gets prompts as `mask` returns them, without secrets; this run recalls them whole.
    """

    def __init__(self, path: str, cwd: str, mask: Callable[[str], str]) -> None:
        self._path = path
        self._cwd = cwd
        self._mask = mask
        self._entries: list[Entry] | None = None
        self.damaged = 0
        self.problem = ""

    @property
    def entries(self) -> list[Entry]:
        """All entries, oldest first; a prompt that was typed again counts once, as the newer."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def add(self, text: str, images: Sequence[str] = ()) -> None:
        """Append a prompt with its images, unless it is the same as the last one."""
        last = self.entries[-1] if self.entries else Entry("")
        if not text.strip() or (last.text, last.images) == (text, tuple(images)):
            return
        entry = Entry(text, self._cwd, round(time.time(), 3), tuple(images))
        self._entries = [*(old for old in self.entries if old.text != text), entry][-KEPT:]
        try:
            make_private_dir(os.path.dirname(self._path))
            fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except (OSError, TrimtabError) as error:
            self.problem = f"The history of prompts cannot be written: {error}."
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            stored = msgspec.structs.replace(entry, text=self._mask(text))
            size = os.fstat(fd).st_size
            cut_off = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # by a crash, or damage
            os.write(fd, (b"\n" if cut_off else b"") + encode_json(stored) + b"\n")
        except OSError as error:
            self.problem = f"The history of prompts cannot be written: {error.strerror}."
        finally:
            os.close(fd)

    def search(self, words: str, *, here: bool = False) -> list[Entry]:
        """Return the entries that contain all words, newest first."""
        parts = words.lower().split()
        return [
            entry
            for entry in reversed(self.entries)
            if (not here or entry.cwd == self._cwd)
            and all(part in entry.text.lower() for part in parts)
        ]

    def _read(self) -> list[Entry]:
        found: dict[str, Entry] = {}
        for line in self._read_lines():
            if not line.strip():
                continue
            try:
                entry = decode_json(line, Entry)
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.damaged += 1
                continue
            found.pop(entry.text, None)
            found[entry.text] = entry
        if self.damaged:
            lines = count(self.damaged, "damaged line")
            self.problem = f"The history of prompts has {lines}; the others are used."
        return list(found.values())[-KEPT:]

    def _read_lines(self) -> list[bytes]:
        """Return the last lines of the file; a first one that is cut off is not among them."""
        try:
            with open(self._path, "rb") as file:
                file.seek(0, os.SEEK_END)
                start = max(0, file.tell() - LARGEST)
                file.seek(start)
                return file.read().split(b"\n")[1 if start else 0 :]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.problem = f"The history of prompts cannot be read: {error.strerror}."
            return []
