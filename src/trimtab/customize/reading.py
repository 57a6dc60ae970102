"""Reads text files and folders within limits; problems are collected instead of raised."""

import os
from collections.abc import Iterator

from trimtab.config.files import read_regular
from trimtab.contracts.customization import Problem

MAX_BYTES = 256 * 1024
"""Bytes that are read of a file. Cutting a larger file is reported as a problem."""
MAX_ENTRIES = 20_000
"""Entries that are read of a folder."""


def read_text(path: str, max_bytes: int = MAX_BYTES) -> tuple[str, tuple[Problem, ...]]:
    """Return the text of a file and its problems; the text is empty if the file is unusable."""
    try:
        data = read_regular(path, max_bytes + 1)
    except OSError as error:
        return "", (Problem(message=f"it cannot be read ({error.strerror})", file=path),)
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "", (Problem(message="it is a binary file and is left out", file=path),)
    problems: list[Problem] = []
    if len(data) > max_bytes:
        data = data[:max_bytes]
        message = f"it is longer than {max_bytes // 1024} KB and was cut there"
        problems.append(Problem(message=message, file=path))
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = data.decode("utf-16")
        else:
            text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        if not (problems and error.start >= len(data) - 3):
            line = data.count(b"\n", 0, error.start) + 1
            problems.append(Problem(message="it is not UTF-8 text", file=path, line=line))
    return text.replace("\r\n", "\n"), tuple(problems)


def stat_file(path: str) -> os.stat_result | None:
    """Return the status of a file, following links; None if it does not exist."""
    try:
        return os.stat(path)
    except OSError:
        return None


def file_identity(path: str) -> tuple[int, int] | str:
    """Return device and inode of a file, the same under all its names; else the path."""
    info = stat_file(path)
    return path if info is None else (info.st_dev, info.st_ino)


class Listing:
    """The entries of a folder, sorted by name. `problem` says why some are missing.

    `folders` are the entries that are folders, without links to folders.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.problem: Problem | None = None
        self.names: list[str] = []
        self.folders: set[str] = set()
        self._links: set[str] = set()
        try:
            with os.scandir(folder) as entries:
                self.names = sorted(self._read_names(folder, entries))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            message = f"the folder cannot be read ({error.strerror})"
            self.problem = Problem(message=message, file=folder)

    def _read_names(self, folder: str, entries: "Iterator[os.DirEntry[str]]") -> Iterator[str]:
        for count, entry in enumerate(entries):
            if count == MAX_ENTRIES:
                message = f"only {MAX_ENTRIES} entries of this folder are read"
                self.problem = Problem(message=message, file=folder)
                return
            if entry.is_dir(follow_symlinks=False):
                self.folders.add(entry.name)
            elif entry.is_symlink():
                self._links.add(entry.name)
            yield entry.name

    def is_folder(self, name: str) -> bool:
        """Return True if an entry is a folder or a link to a folder."""
        if name in self._links:
            return os.path.isdir(os.path.join(self._folder, name))
        return name in self.folders


class Walk:
    """Finds the files below a folder that end in `suffix`, level by level, within limits."""

    def __init__(self, folder: str, suffix: str, *, depth: int = 8, entries: int = 5000) -> None:
        self._suffix = suffix
        self._entries = entries
        self._seen: set[tuple[int, int]] = set()
        self.problems: list[Problem] = []
        self.files: list[str] = []
        level = [folder]
        for _ in range(depth):
            level = [below for parent in level for below in self._read_folder(parent)]
        if level:
            message = f"folders more than {depth} levels down are not read"
            self.problems.append(Problem(message=message, file=level[0]))

    def _read_folder(self, folder: str) -> list[str]:
        """Collect the files of a folder; return the folders in it."""
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
                message = "there are too many files here; the rest is not read"
                self.problems.append(Problem(message=message, file=folder))
                return []
            if listing.is_folder(name):
                folders.append(os.path.join(folder, name))
            elif name.endswith(self._suffix):
                self.files.append(os.path.join(folder, name))
        return folders
