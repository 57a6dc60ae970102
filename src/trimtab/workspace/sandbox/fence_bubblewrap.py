"""Bubblewrap as a fence: a file system of read-only parts.

The network needs no namespace: the filter of system calls refuses sockets, and programs that show
the network (`ip`, `ss`) show that of the machine.
"""

import os
from collections.abc import Sequence
from functools import lru_cache

from trimtab.workspace.sandbox.fence_policy import FencePolicy, is_below
from trimtab.workspace.sandbox.watched_secrets import WatchedSecrets

NAMESPACES = (
    *("--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
    "--unshare-cgroup-try",
)
ROOT_MAY = ("DAC_OVERRIDE", "DAC_READ_SEARCH")
SETTINGS = WatchedSecrets("/etc")
"""The files of /etc that not everybody may read."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty")
DEVICE_LINKS = {
    "/dev/random": "urandom",
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
SYSTEM_PARTS = ("/sys/block", "/sys/class", "/sys/devices")
"""The parts of /sys that are shown: others may hold many mounts, and each takes its time."""
SHOW_PROCESSES = ("--proc", "/proc", "--remount-ro", "/proc")
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


def list_arguments(policy: FencePolicy, temp: str) -> list[str]:
    """Return bubblewrap's arguments for a command. Later mounts cover earlier ones."""
    argv = list_rights()
    for path in list_parts(policy):
        argv += ["--ro-bind-try", path, path]
    for path in SETTINGS.find():
        argv += cover(path)
    argv += ["--tmpfs", "/dev"]
    for path in DEVICES:
        argv += ["--dev-bind", path, path]
    for target, path in (*list_links(policy), *((to, path) for path, to in DEVICE_LINKS.items())):
        argv += ["--symlink", target, path]
    argv += ["--remount-ro", "/dev", *SHOW_PROCESSES, "--bind", temp, temp]
    for path in policy.denied:
        argv += cover(path)
    return [*argv, "--remount-ro", "/"]


def list_rights() -> list[str]:
    """Return the arguments other than mounts."""
    argv = [*NAMESPACES, "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        argv += [word for name in ROOT_MAY for word in ("--cap-add", f"CAP_{name}")]
    return argv


@lru_cache(maxsize=4)
def list_parts(policy: FencePolicy) -> list[str]:
    """Return what is mounted: / if everything may be read.

    Every mount takes its time: /etc is shown as a whole, and its secrets are covered.
    """
    if "/" in policy.readable:
        return ["/"]
    readable = [path for path in policy.readable if not is_below(path, "/proc")]
    readable = ["/etc", *(path for path in readable if not is_below(path, "/etc"))]
    if "/sys" in readable:
        readable = [*(path for path in readable if path != "/sys"), *SYSTEM_PARTS]
    return drop_nested(sorted(dict.fromkeys((*readable, *policy.programs))))


@lru_cache(maxsize=4)
def list_links(policy: FencePolicy) -> list[tuple[str, str]]:
    """Return the links of the root directory that programs rely on: target and path."""
    if "/" in policy.readable:  # they are there
        return []
    return [(os.readlink(path), path) for path in LINKS if os.path.islink(path)]


def cover(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", "/dev/null", path] if os.path.exists(path) else []


def drop_nested(paths: Sequence[str]) -> list[str]:
    """Return sorted paths without those below another."""
    kept: list[str] = []
    for path in paths:
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return kept
