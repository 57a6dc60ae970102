"""Keeps the objects of git repositories, to restore a deleted repository."""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from trimtab.config.files import make_private_dir, open_private

MAX_OBJECTS = 20_000
"""The limit of objects kept at a time."""
MAX_COPIED = 64 * 1024 * 1024
"""The limit of bytes copied if the repository is on another file system."""
TICK = 50_000_000
"""Nanoseconds in which a directory may change again without its time showing it."""
PATH = "path"
JOINED = "!"
"""Separates folder and name, so that one folder is enough for all."""


class GitObjects:
    """Keeps a hard link to every object of some repositories.

    Git never changes an object, it only deletes it; until then, a link takes no space. Links to
    objects that still exist are removed at the end.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: dict[str, int] = {}
        self._copied = 0

    def keep(self, objects: str, deadline: float) -> str:
        """Keep the objects in a folder; return why not all were kept, or an empty text."""
        left = MAX_OBJECTS
        try:
            target_folder = self._folder_for(objects)
            for folder, changed in _look(objects):
                source = os.path.join(objects, folder)
                if self._seen.get(source) == changed:
                    continue
                left -= self._keep_folder(source, os.path.join(target_folder, folder))
                if left < 0 or time.monotonic() > deadline:
                    return f"{objects} has too many objects to be kept; git gc would help"
                if time.time_ns() - changed > TICK:
                    self._seen[source] = changed
        except OSError as error:
            return f"the objects in {objects} are not kept ({error.strerror})"
        return ""

    def restore_missing(self, touched: Iterable[str]) -> int:
        """Restore missing objects of existing repositories; return how many.

        Only repositories that contain a `touched` path are restored.
        """
        count = 0
        for target_folder, objects in self._folders():
            repository = os.path.dirname(objects)
            inside = any(f"{path}/".startswith(f"{repository}/") for path in touched)
            if inside and os.path.isdir(repository):
                os.makedirs(objects, exist_ok=True)
                count += sum(
                    _restore(target_folder, objects, name) for name in _names(target_folder)
                )
        return count

    def release(self) -> None:
        """Remove links to objects that still exist. Links to deleted objects stay."""
        for target_folder, objects in self._folders():
            there = {f"{folder}{JOINED}{name}" for folder, name in _entries(objects)}
            for name in _names(target_folder):
                if name in there:
                    os.unlink(os.path.join(target_folder, name))
            if os.path.isdir(objects) and os.listdir(target_folder) == [PATH]:
                shutil.rmtree(target_folder, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(self._folder)

    def _folder_for(self, objects: str) -> str:
        name = hashlib.sha256(os.fsencode(objects)).hexdigest()[:16]
        target_folder = os.path.join(self._folder, name)
        if not os.path.isdir(target_folder):
            make_private_dir(target_folder)
            with open(open_private(os.path.join(target_folder, PATH), os.O_WRONLY), "wb") as file:
                file.write(os.fsencode(objects))
        return target_folder

    def _folders(self) -> Iterator[tuple[str, str]]:
        """Yield the folder of kept objects and the original folder, for each repository."""
        with suppress(OSError):
            for name in os.listdir(self._folder):
                target_folder = os.path.join(self._folder, name)
                with suppress(OSError), open(os.path.join(target_folder, PATH), "rb") as file:
                    yield target_folder, os.fsdecode(file.read())

    def _keep_folder(self, source: str, target: str) -> int:
        count = 0
        for name in _list(source):
            kept_name = f"{target}{JOINED}{name}"
            if name[:4] != "tmp_" and not os.path.lexists(kept_name):
                count += 1
                with suppress(FileNotFoundError, FileExistsError):
                    self._link_or_copy(os.path.join(source, name), kept_name)
        return count

    def _link_or_copy(self, source: str, target: str) -> None:
        try:
            os.link(source, target)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:  # another file system, or no hard links
            if os.path.isdir(source):  # commit graph chains, which git can regenerate
                return
            self._copied += os.stat(source).st_size
            if self._copied > MAX_COPIED:
                raise
            _copy(source, target, 0o600)


def _look(objects: str) -> Iterator[tuple[str, int]]:
    """Yield the folders of objects, and the time of their last change."""
    fd = os.open(objects, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in os.listdir(fd):
            try:
                found = os.stat(name, dir_fd=fd)
            except FileNotFoundError:  # git removed it meanwhile
                continue
            if stat.S_ISDIR(found.st_mode):
                yield name, found.st_mtime_ns
    finally:
        os.close(fd)


def _entries(objects: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and name of every object."""
    with suppress(OSError):
        for folder, _ in _look(objects):
            for name in _list(os.path.join(objects, folder)):
                yield folder, name


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:  # git removes empty folders
        return []


def _names(target_folder: str) -> list[str]:
    """Return the names of the kept objects."""
    return [name for name in os.listdir(target_folder) if name != PATH]


def _restore(source_folder: str, objects: str, name: str) -> bool:
    target = os.path.join(objects, *name.split(JOINED, 1))
    if os.path.lexists(target):
        return False
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(os.path.join(source_folder, name), target)
    except FileExistsError:
        return False
    except OSError:
        _copy(os.path.join(source_folder, name), target, 0o444)  # git's own mode
    return True


def _copy(source: str, target: str, mode: int) -> None:
    temporary = f"{target}.{os.getpid()}.tmp"
    with open(source, "rb") as old, open(open_private(temporary, os.O_WRONLY), "wb") as new:
        shutil.copyfileobj(old, new)
        os.fchmod(new.fileno(), mode)
    os.rename(temporary, target)
