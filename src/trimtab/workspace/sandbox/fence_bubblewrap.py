"""Arguments for bubblewrap that make it a fence: a file system of read-only parts."""

import os
from collections.abc import Sequence

from trimtab.workspace.sandbox.fence_policy import FencePolicy, is_below
from trimtab.workspace.sandbox.watched_secrets import WatchedSecrets

ROOT_MAY = ("DAC_OVERRIDE", "DAC_READ_SEARCH")
SETTINGS = WatchedSecrets("/etc")
"""The files of /etc that not everybody may read."""
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


def frame(policy: FencePolicy, program: str, temp: str) -> list[str]:
    """Return the arguments to start a command. Later mounts cover earlier ones."""
    argv = [program, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent"]
    if os.geteuid() == 0:
        argv += [word for name in ROOT_MAY for word in ("--cap-add", f"CAP_{name}")]
    readable = [path for path in policy.readable if not is_below(path, "/proc")]
    if "/" in readable:
        argv += ["--ro-bind", "/", "/"]
        readable = []
    argv += [word for path in LINKS if os.path.islink(path) for word in link(path)]
    # Every mount takes its time: /etc is shown as a whole, and its secrets are covered.
    readable = ["/etc", *(path for path in readable if not is_below(path, "/etc"))]
    paths = sorted(dict.fromkeys((*readable, *policy.programs)))
    for path in drop_nested(paths):
        argv += ["--ro-bind", path, path]
    for path in SETTINGS.find():
        argv += cover(path)
    argv += ["--dev", "/dev", "--proc", "/proc"]
    argv += ["--bind", temp, temp]
    for path in policy.denied:
        argv += cover(path)
    return argv


def cover(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", "/dev/null", path] if os.path.exists(path) else []


def link(path: str) -> list[str]:
    return ["--symlink", os.readlink(path), path]


def drop_nested(paths: Sequence[str]) -> list[str]:
    """Return sorted paths without those below another."""
    kept: list[str] = []
    for path in paths:
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return kept
