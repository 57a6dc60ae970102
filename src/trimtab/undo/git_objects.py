"""Keeps the objects of git repositories within reach, so that a deleted one can be made whole."""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from trimtab.config.files import make_private_dir, open_private

OBJECTS = 20_000
"""So many objects are taken hold of at a time."""
ROOM = 64 * 1024 * 1024
"""What is copied where the repository is on another file system."""
TICK = 50_000_000
"""Nanoseconds in which a directory may change again without its time showing it."""
PATH = "path"
JOINED = "!"
"""Stands between folder and name, so that one folder is enough for all."""


class GitObjects:
    """Holds a second name, a hard link, for every object of some repositories.

    Git never changes an object, it only deletes it; as long as it does not, a link takes no space.
    What is still there at the end is let go.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: dict[str, int] = {}
        self._copied = 0

    def keep(self, objects: str, deadline: float) -> str:
        """Take hold of what is in a folder of objects; gives why not of all, if so."""
        left = OBJECTS
        try:
            place = self._place(objects)
            for folder, changed in _look(objects):
                source = os.path.join(objects, folder)
                if self._seen.get(source) == changed:
                    continue
                left -= self._keep_folder(source, os.path.join(place, folder))
                if left < 0 or time.monotonic() > deadline:
                    return f"{objects} has too many objects to be kept; git gc would help"
                if time.time_ns() - changed > TICK:
                    self._seen[source] = changed
        except OSError as error:
            return f"the objects in {objects} are not kept ({error.strerror})"
        return ""

    def bring_back(self, touched: Iterable[str]) -> int:
        """Put back every object that is gone from a repository which is there; says how many.

        Only repositories count in which one of the paths is that were `touched`.
        """
        count = 0
        for place, objects in self._places():
            repository = os.path.dirname(objects)
            inside = any(f"{path}/".startswith(f"{repository}/") for path in touched)
            if inside and os.path.isdir(repository):
                os.makedirs(objects, exist_ok=True)
                count += sum(_restore(place, objects, name) for name in _names(place))
        return count

    def release(self) -> None:
        """Let go of what is still there. Objects that are gone stay kept."""
        for place, objects in self._places():
            there = {f"{folder}{JOINED}{name}" for folder, name in _entries(objects)}
            for name in _names(place):
                if name in there:
                    os.unlink(os.path.join(place, name))
            if os.path.isdir(objects) and os.listdir(place) == [PATH]:
                shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(self._folder)

    def _place(self, objects: str) -> str:
        name = hashlib.sha256(os.fsencode(objects)).hexdigest()[:16]
        place = os.path.join(self._folder, name)
        if not os.path.isdir(place):
            make_private_dir(place)
            with open(open_private(os.path.join(place, PATH), os.O_WRONLY), "wb") as file:
                file.write(os.fsencode(objects))
        return place

    def _places(self) -> Iterator[tuple[str, str]]:
        """Where the objects of each repository are kept, and where they belong."""
        with suppress(OSError):
            for name in os.listdir(self._folder):
                place = os.path.join(self._folder, name)
                with suppress(OSError), open(os.path.join(place, PATH), "rb") as file:
                    yield place, os.fsdecode(file.read())

    def _keep_folder(self, source: str, target: str) -> int:
        count = 0
        for name in _list(source):
            held = f"{target}{JOINED}{name}"
            if name[:4] != "tmp_" and not os.path.lexists(held):
                count += 1
                with suppress(FileNotFoundError, FileExistsError):
                    self._hold(os.path.join(source, name), held)
        return count

    def _hold(self, source: str, target: str) -> None:
        try:
            os.link(source, target)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:  # another file system, or one without links
            if os.path.isdir(source):  # what git can make again: chains of commit graphs
                return
            self._copied += os.stat(source).st_size
            if self._copied > ROOM:
                raise
            _copy(source, target, 0o600)


def _look(objects: str) -> Iterator[tuple[str, int]]:
    """The folders in which objects are, and when each was last changed."""
    fd = os.open(objects, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.listdir(fd):
            try:
                found = os.stat(name, dir_fd=fd)
            except FileNotFoundError:  # git tidies up meanwhile
                continue
            if stat.S_ISDIR(found.st_mode):
                yield name, found.st_mtime_ns
    finally:
        os.close(fd)


def _entries(objects: str) -> Iterator[tuple[str, str]]:
    """The folder and the name of every object."""
    with suppress(OSError):
        for folder, _ in _look(objects):
            for name in _list(os.path.join(objects, folder)):
                yield folder, name


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:  # git removes those that are empty
        return []


def _names(place: str) -> list[str]:
    """The names under which objects are kept."""
    return [name for name in os.listdir(place) if name != PATH]


def _restore(place: str, objects: str, name: str) -> bool:
    target = os.path.join(objects, *name.split(JOINED, 1))
    if os.path.lexists(target):
        return False
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(os.path.join(place, name), target)
    except FileExistsError:
        return False
    except OSError:
        _copy(os.path.join(place, name), target, 0o444)  # as git makes them
    return True


def _copy(source: str, target: str, mode: int) -> None:
    temporary = f"{target}.{os.getpid()}.tmp"
    with open(source, "rb") as old, open(open_private(temporary, os.O_WRONLY), "wb") as new:
        shutil.copyfileobj(old, new)
        os.fchmod(new.fileno(), mode)
    os.rename(temporary, target)
