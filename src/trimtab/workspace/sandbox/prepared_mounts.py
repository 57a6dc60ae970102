"""Mounts of the fence that are made once, not for each command.

Bubblewrap takes ten times as long for a mount as we do, and makes them all for each command. Root
may make them ahead, in a mount namespace from which bubblewrap is then started.
"""

import os
import stat
import tempfile
from collections.abc import Sequence

from trimtab.workspace.sandbox.confinement import run_apart
from trimtab.workspace.sandbox.fence_bubblewrap import (
    DEVICE_LINKS,
    DEVICES,
    SETTINGS,
    SHOW_PROCESSES,
    list_links,
    list_parts,
    list_rights,
)
from trimtab.workspace.sandbox.fence_policy import FencePolicy, is_below
from trimtab.workspace.sandbox.mounts import (
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SET_ID,
    READ_ONLY,
    MountNamespace,
    MountTable,
    enter,
)

Identity = tuple[int, int, int]
"""The device and inode of a path; for a file, also the time of its last change."""


class PreparedMounts:
    """A mount namespace that holds what a fenced command sees."""

    def __init__(self, policy: FencePolicy) -> None:
        self._policy = policy
        self._parts = list_parts(policy)
        self._namespace = -1
        self._mount_table = MountTable()
        self._seen: list[Identity | None] = []

    def serves(self, program: str) -> bool:
        """Return True if a program can be started here."""
        started = any(is_below(program, folder) for folder in self._policy.programs)
        return os.geteuid() == 0 and "/" not in self._parts and started

    def list_arguments(self) -> list[str]:
        """Return bubblewrap's arguments for a command that is started here."""
        return [*list_rights(), "--dev-bind", "/", "/", *SHOW_PROCESSES]

    def prepare(self) -> None:
        """Make the mounts if there are none yet, or if they no longer fit. Raises `OSError`."""
        covered = [*SETTINGS.find(), *self._policy.denied]
        # A mount covers a file, not its name: what has been put in its place would lie open.
        seen = [identify(path) for path in (*self._parts, *covered)]
        changed = self._mount_table.has_changed()
        if self._namespace >= 0 and seen == self._seen and not changed:
            return
        self._release()
        self._seen = seen
        root = tempfile.mkdtemp(dir=self._policy.temp)
        try:
            self._namespace = run_apart(lambda: self._build(root, covered))
        finally:
            os.rmdir(root)

    def enter(self, temp: str) -> None:
        """Move the calling thread into a copy of the namespace, for good. Raises `OSError`.

        There, a command may write to its own temp folder.
        """
        enter(self._namespace)
        own = MountNamespace()
        own.bind(temp, temp, recursive=False)
        own.let_write(temp)

    def close(self) -> None:
        self._release()
        self._mount_table.close()

    def _release(self) -> None:
        if self._namespace >= 0:
            os.close(self._namespace)
        self._namespace = -1

    def _build(self, root: str, covered: Sequence[str]) -> int:
        temp = self._policy.temp
        namespace = MountNamespace()
        namespace.mount_empty(root, "mode=0755,size=1m")
        for target, path in list_links(self._policy):
            os.symlink(target, root + path)
        for path in filter(os.path.exists, self._parts):
            make_mount_point(path, root + path)
            namespace.bind(path, root + path)
            if not any(is_below(program, path) for program in self._policy.programs):
                namespace.restrict(root + path, NO_PROGRAMS)
        for path in covered:
            if os.path.exists(root + path):
                namespace.cover(root + path)
        for path in ("/dev", "/proc", temp):
            make_mount_point(path, root + path)
        namespace.restrict(root, READ_ONLY | NO_SET_ID | NO_DEVICES)
        mount_devices(namespace, root)
        namespace.bind("/proc", f"{root}/proc", recursive=False)
        namespace.bind(temp, root + temp, recursive=False)
        namespace.restrict(root + temp, READ_ONLY | NO_SET_ID | NO_DEVICES | NO_PROGRAMS)
        namespace.set_root(root)
        return namespace.keep()


def mount_devices(namespace: MountNamespace, root: str) -> None:
    namespace.mount_empty(f"{root}/dev", "mode=0755,size=1m")
    for path in DEVICES:
        make_mount_point(path, root + path)
        namespace.bind(path, root + path)
    for path, target in DEVICE_LINKS.items():
        os.symlink(target, root + path)
    namespace.restrict(f"{root}/dev", READ_ONLY | NO_SET_ID)


def make_mount_point(path: str, target: str) -> None:
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o444))


def identify(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    changed = 0 if stat.S_ISDIR(found.st_mode) else found.st_ctime_ns
    return found.st_dev, found.st_ino, changed
