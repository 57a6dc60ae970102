"""Reads the files people write: bounded, whatever is in them; a problem never stops the rest."""

import os
from collections.abc import Iterator

from trimtab.config.files import read_regular
from trimtab.contracts.customization import Problem

LARGEST = 256 * 1024
"""Bytes of one file that are read. Larger ones are cut, and that is a problem to report."""
MOST_ENTRIES = 20_000
"""Entries of one folder that are looked at."""


def read_text(path: str, largest: int = LARGEST) -> tuple[str, tuple[Problem, ...]]:
    """The text of a file, and what was wrong with it; an empty text if it cannot be used."""
    try:
        data = read_regular(path, largest + 1)
    except OSError as error:
        return "", (Problem(message=f"it cannot be read ({error.strerror})", file=path),)
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "", (Problem(message="it is a binary file and is left out", file=path),)
    problems: list[Problem] = []
    if len(data) > largest:
        data = data[:largest]
        message = f"it is longer than {largest // 1024} KB and was cut there"
        problems.append(Problem(message=message, file=path))
    try:
        text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        if not (problems and error.start >= len(data) - 3):
            line = data.count(b"\n", 0, error.start) + 1
            problems.append(Problem(message="it is not UTF-8 text", file=path, line=line))
    return text.replace("\r\n", "\n"), tuple(problems)


def look(path: str) -> os.stat_result | None:
    """What a file looks like from outside, a link followed; None where there is none."""
    try:
        return os.stat(path)
    except OSError:
        return None


def identify(path: str) -> tuple[int, int] | str:
    """What a file is, whatever name it goes by; the path itself where there is none."""
    info = look(path)
    return path if info is None else (info.st_dev, info.st_ino)


class Listing:
    """The entries of a folder, sorted by name; `problem` says why it is not all of them.

    `folders` are those of them that are folders and no links.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.problem: Problem | None = None
        self.names: list[str] = []
        self.folders: set[str] = set()
        self._links: set[str] = set()
        try:
            with os.scandir(folder) as entries:
                self.names = sorted(self._take(folder, entries))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            message = f"the folder cannot be read ({error.strerror})"
            self.problem = Problem(message=message, file=folder)

    def _take(self, folder: str, entries: "Iterator[os.DirEntry[str]]") -> Iterator[str]:
        for count, entry in enumerate(entries):
            if count == MOST_ENTRIES:
                message = f"only {MOST_ENTRIES} entries of this folder are looked at"
                self.problem = Problem(message=message, file=folder)
                return
            if entry.is_dir(follow_symlinks=False):
                self.folders.add(entry.name)
            elif entry.is_symlink():
                self._links.add(entry.name)
            yield entry.name

    def is_folder(self, name: str) -> bool:
        """Whether an entry is a folder or a link to one; of most this is known without a look."""
        if name in self._links:
            return os.path.isdir(os.path.join(self._folder, name))
        return name in self.folders


class Walk:
    """Files below a folder whose names end in `suffix`, nearest first; bounded and loop-free."""

    def __init__(self, folder: str, suffix: str, *, depth: int = 8, entries: int = 5000) -> None:
        self._suffix = suffix
        self._entries = entries
        self._seen: set[tuple[int, int]] = set()
        self.problems: list[Problem] = []
        self.files: list[str] = []
        level = [folder]
        for _ in range(depth):
            level = [below for one in level for below in self._look_into(one)]
        if level:
            message = f"folders more than {depth} levels down are not looked at"
            self.problems.append(Problem(message=message, file=level[0]))

    def _look_into(self, folder: str) -> list[str]:
        """Collects the files of one folder; returns the folders in it."""
        try:
            info = os.stat(folder)
        except OSError:
            return []
        if (info.st_dev, info.st_ino) in self._seen or self._entries <= 0:
            return []  # a symbolic link back up
        self._seen.add((info.st_dev, info.st_ino))
        listing = Listing(folder)
        if listing.problem:
            self.problems.append(listing.problem)
        folders = []
        for name in listing.names:
            self._entries -= 1
            if self._entries < 0:
                message = "there are too many files here; the rest is not looked at"
                self.problems.append(Problem(message=message, file=folder))
                return []
            if listing.is_folder(name):
                folders.append(os.path.join(folder, name))
            elif name.endswith(self._suffix):
                self.files.append(os.path.join(folder, name))
        return folders
