"""Finds what not everybody may read below a folder, and searches again only after a change.

To search /etc takes a fifth of the time that bubblewrap needs. The kernel reports every change of
names and rights in watched folders (inotify), so what was found holds until the next report. Where
nothing can be watched, each call searches.
"""

import ctypes
import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress

from trimtab.workspace.sandbox.landlock import check
from trimtab.workspace.sandbox.mounts import MountTable

RIGHTS, MOVED, CREATED, DELETED, SELF_GONE, ONLY_FOLDERS = 4, 0xC0, 0x100, 0x200, 0xC00, 1 << 24
CHANGES = RIGHTS | MOVED | CREATED | DELETED | SELF_GONE | ONLY_FOLDERS
MAX_WATCHED = 2000
"""Folders that are watched at most: the kernel has a limit for all programs of a user."""


class WatchedSecrets:
    """The entries below a folder that this user may read, and not everybody."""

    def __init__(self, folder: str, most: int = MAX_WATCHED) -> None:
        self._folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._watch = -1
        self._watched = 0
        self._mount_table = MountTable()
        self._found: tuple[str, ...] = ()

    def find(self) -> Sequence[str]:
        """Return the paths of files, and of folders that are closed to others as a whole."""
        with self._lock:
            if not self._is_current():
                self._search()
            return self._found

    def close(self) -> None:
        self._stop_watching()
        self._mount_table.close()

    def _stop_watching(self) -> None:
        if self._watch >= 0:
            os.close(self._watch)
        self._watch = -1

    def _is_current(self) -> bool:
        """Return True if no change was reported."""
        # What is mounted over a folder causes no report of its own.
        if self._mount_table.has_changed() or self._watch < 0:
            return False
        try:
            os.read(self._watch, 1)
        except BlockingIOError:  # no report
            return True
        except OSError:  # a report; it is longer than a byte, so it stays for a forked process too
            return False
        return False

    def _search(self) -> None:
        """Search all folders; each is watched before it is read, so that no change is missed."""
        self._stop_watching()
        self._watched = 0
        libc = ctypes.CDLL(None, use_errno=True)
        with suppress(OSError, AttributeError):  # too many watches, or a system without them
            self._watch = check(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        found: list[str] = []
        folders = [self._folder]
        for folder in folders:  # grows on the way
            self._add(libc, folder)
            with suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        continue
                    if not entry.stat(follow_symlinks=False).st_mode & stat.S_IROTH:
                        # Every cover is a mount, and takes its time.
                        found += [entry.path] if os.access(entry.path, os.R_OK) else []
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        self._found = tuple(found)

    def _add(self, libc: ctypes.CDLL, folder: str) -> None:
        """Watch a folder; if that is impossible, watch nothing at all."""
        if self._watch < 0:
            return
        self._watched += 1
        path = os.fsencode(folder)
        if self._watched > self._most or libc.inotify_add_watch(self._watch, path, CHANGES) < 0:
            self._stop_watching()
