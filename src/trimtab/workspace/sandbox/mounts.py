"""Mounts by system calls, which root may make without bubblewrap, and faster."""

import ctypes
import os
import select
import struct
from contextlib import suppress

from trimtab.workspace.sandbox.landlock import check

NEW_NAMESPACE, OWN_FOLDERS = 0x20000, 0x200
BIND, RECURSIVE, PRIVATE, DETACH = 4096, 16384, 1 << 18, 2
SET_ATTRIBUTES, AT_FOLDER, AT_RECURSIVE = 442, -100, 0x8000
READ_ONLY, NO_SET_ID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8


class MountNamespace:
    """A mount namespace of the calling thread, for programs that are started from it.

    Every method raises `OSError`.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        check(self._libc.unshare(NEW_NAMESPACE))
        check(self._libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))

    def bind(self, source: str, target: str, *, recursive: bool = True) -> None:
        """Mount a file or folder, with what is mounted below it if `recursive`."""
        flags = BIND | RECURSIVE if recursive else BIND
        check(self._libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None))

    def mount_empty(self, target: str, options: str) -> None:
        """Mount an empty folder that is kept in memory."""
        check(self._libc.mount(b"none", os.fsencode(target), b"tmpfs", 0, options.encode()))

    def restrict(self, path: str, flags: int) -> None:
        """Restrict what may be done below a mount, and below all mounts in it."""
        self._set_attributes(path, flags, 0)

    def let_write(self, path: str) -> None:
        """Let what is below a mount be changed, even if it was bound from a read-only one."""
        self._set_attributes(path, 0, READ_ONLY)

    def _set_attributes(self, path: str, added: int, removed: int) -> None:
        wanted = struct.pack("=4Q", added, removed, 0, 0)
        about = os.fsencode(path), AT_RECURSIVE, wanted, len(wanted)
        check(self._libc.syscall(SET_ATTRIBUTES, AT_FOLDER, *about))

    def cover(self, path: str) -> None:
        """Hide the contents of a file or folder: it can be neither read nor written."""
        if os.path.isdir(path):
            self.mount_empty(path, "mode=0000,size=4k")
        else:
            self.bind(os.devnull, path)
        self.restrict(path, READ_ONLY | NO_DEVICES)

    def set_root(self, root: str) -> None:
        """Make a mount the root of the file system; whatever is not mounted below it is gone."""
        os.chdir(root)
        check(self._libc.pivot_root(b".", b"."))
        check(self._libc.umount2(b".", DETACH))
        os.chdir("/")

    def keep(self) -> int:
        """Return a descriptor that keeps the namespace, for `enter`."""
        return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


class MountTable:
    """The mounts of this process, and whether they have changed."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._process = 0

    def has_changed(self) -> bool:
        """Return True if anything was mounted or unmounted since the last call.

        Also at the first call, and where that cannot be told.
        """
        if self._descriptor < 0 or self._process != os.getpid():  # a report reaches only one
            self.close()
            self._process = os.getpid()
            with suppress(OSError):
                self._descriptor = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLPRI)
        return bool(poll.poll(0))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def enter(namespace: int) -> None:
    """Enter a mount namespace with the calling thread. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.unshare(OWN_FOLDERS))
    check(libc.setns(namespace, NEW_NAMESPACE))
