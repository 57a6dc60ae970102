"""Keeps the objects of git repositories within reach, so that a deleted one can be made whole."""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress

from trimtab.config.files import make_private_dir

OBJECTS = 20_000
"""So many objects are taken hold of at a time."""
ROOM = 64 * 1024 * 1024
"""What is copied where the repository is on another file system."""
TICK = 50_000_000
"""Nanoseconds in which a directory may change again without its time showing it."""
PATH = "path"


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
        place = self._place(objects)
        left = OBJECTS
        try:
            for name in os.listdir(objects):
                source = os.path.join(objects, name)
                changed = os.stat(source).st_mtime_ns
                if self._seen.get(source) == changed or not os.path.isdir(source):
                    continue
                left -= self._keep_folder(source, os.path.join(place, name))
                if left < 0 or time.monotonic() > deadline:
                    return f"{objects} has too many objects to be kept; git gc would help"
                if time.time_ns() - changed > TICK:
                    self._seen[source] = changed
        except OSError as error:
            return f"the objects in {objects} are not kept ({error.strerror})"
        return ""

    def bring_back(self) -> int:
        """Put back every object that is gone from a repository which is there; says how many."""
        count = 0
        for place, objects in self._places():
            if not os.path.isdir(os.path.dirname(objects)):
                continue
            for folder in _folders(place):
                os.makedirs(os.path.join(objects, folder), exist_ok=True)
                names = os.listdir(os.path.join(place, folder))
                count += sum(_restore(place, objects, f"{folder}/{name}") for name in names)
        return count

    def release(self) -> None:
        """Let go of what is still there. Objects that are gone stay kept."""
        for place, objects in self._places():
            if not os.path.isdir(objects):
                continue
            for name in _folders(place):
                _release(os.path.join(place, name), os.path.join(objects, name))
            if os.listdir(place) == [PATH]:
                shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(self._folder)

    def _place(self, objects: str) -> str:
        name = hashlib.sha256(os.fsencode(objects)).hexdigest()[:16]
        place = os.path.join(self._folder, name)
        if not os.path.isdir(place):
            make_private_dir(self._folder)
            os.mkdir(place, 0o700)
            with open(os.path.join(place, PATH), "wb") as file:
                file.write(os.fsencode(objects))
        return place

    def _places(self) -> Iterator[tuple[str, str]]:
        """Where the objects of each repository are kept, and where they belong."""
        with suppress(OSError):
            for name in os.listdir(self._folder):
                place = os.path.join(self._folder, name)
                with suppress(OSError), open(os.path.join(place, PATH), "rb") as file:
                    yield place, os.fsdecode(file.read())

    def _keep_folder(self, source: str, place: str) -> int:
        os.makedirs(place, 0o700, exist_ok=True)
        held = set(os.listdir(place))
        fresh = [one for one in os.listdir(source) if one not in held and one[:4] != "tmp_"]
        for name in fresh:
            with suppress(FileNotFoundError, FileExistsError):
                self._hold(os.path.join(source, name), os.path.join(place, name))
        return len(fresh)

    def _hold(self, source: str, target: str) -> None:
        try:
            os.link(source, target)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError:  # another file system, or one without links
            self._copied += os.stat(source).st_size
            if self._copied > ROOM:
                raise
            _copy(source, target)


def _folders(place: str) -> list[str]:
    """The folders of objects that are kept."""
    return [name for name in os.listdir(place) if name != PATH]


def _restore(place: str, objects: str, name: str) -> bool:
    target = os.path.join(objects, name)
    if os.path.lexists(target):
        return False
    try:
        os.link(os.path.join(place, name), target)
    except FileExistsError:
        return False
    except OSError:
        _copy(os.path.join(place, name), target)
    return True


def _copy(source: str, target: str) -> None:
    temporary = f"{target}.{os.getpid()}.tmp"
    shutil.copy2(source, temporary)
    os.rename(temporary, target)


def _release(place: str, folder: str) -> None:
    """Let go of the objects of one folder that are still in it, and of its own if it is empty."""
    there = set(os.listdir(folder)) if os.path.isdir(folder) else set[str]()
    for name in os.listdir(place):
        if name in there:
            os.unlink(os.path.join(place, name))
    with suppress(OSError):
        os.rmdir(place)
