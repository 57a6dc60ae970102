"""Paths as the operating system sees them: where they lead, and what must not be touched."""

import os
import stat
import sys
from collections.abc import Collection, Iterable
from itertools import pairwise

from trimtab.contracts.images import HEAD, image_type

_FOLDED = sys.platform in ("darwin", "win32")
_SPECIAL = {
    stat.S_IFIFO: "a FIFO, which could block",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
PUBLIC = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"),
    *("/usr/include", "/usr/share", "/usr/src", "/usr/local/bin", "/usr/local/include"),
    *(
        "/usr/local/lib",
        "/usr/local/opt",
        "/usr/local/share",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/version",
    ),
    *("/proc/uptime", "/proc/loadavg", "/proc/filesystems", "/proc/stat", "/proc/diskstats"),
    *("/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/alpine-release"),
    *("/etc/fedora-release", "/etc/redhat-release", "/etc/arch-release", "/etc/timezone"),
    *("/sys/block", "/sys/class", "/sys/devices", "/System/Library"),
    *("/opt/homebrew/bin", "/opt/homebrew/Cellar", "/opt/homebrew/include", "/opt/homebrew/lib"),
    *("/opt/homebrew/opt", "/opt/homebrew/share", "/Library/Developer/CommandLineTools"),
)
"""Parts of a system that are no secret to anybody: commands that only read may read them."""
LONGEST = 32_768
"""More characters than any system takes in a path."""
_SESSION_FILES = ("plan.md", "files")
_INVISIBLE = dict.fromkeys(
    (0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070))
)
"""Characters that some file systems pass over when they compare names."""


def resolve(path: str) -> str:
    """Return a path with every link resolved; of a missing file, the links of its parents."""
    if len(path) > LONGEST:  # nothing can be there, and to look for it would take long
        return os.path.abspath(path.replace("\0", "\ufffd"))
    try:
        return os.path.realpath(path)
    except OSError as error:  # a link that nobody may read: it leads no further
        return str(error.filename)
    except ValueError:  # no name has a NUL in it
        return os.path.normpath(path.replace("\0", "\ufffd"))


def fold(path: str) -> str:
    """A path in the form in which equal ones are equal on this system."""
    return path.casefold() if _FOLDED else path


def is_inside(path: str, roots: Iterable[str]) -> bool:
    """Return True if a path, with all links resolved, is one of the roots or below one.

    What lies below a root as it is written, after all links, is inside: no link is left in it.
    """
    real, roots = fold(resolve(path)), tuple(roots)
    if any(real.startswith(f"{fold(root)}{os.sep}") for root in roots if os.path.isabs(root)):
        return True
    parts = real.split(os.sep)
    for root in roots:
        wanted = fold(resolve(root)).rstrip(os.sep).split(os.sep)
        if parts[: len(wanted)] == wanted:
            return True
    return False


def is_protected(path: str) -> bool:
    """Return True if writing there could make something run later, now or once it exists."""
    if any(_is_protected(name) for name in {resolve(path), os.path.normpath(path)}):
        return True
    return has_other_names(path)


def has_other_names(path: str) -> bool:
    """Return True if a file can be reached by another name, too, which may be a protected one."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def is_pipe(path: str) -> bool:
    """Return True for a FIFO in a folder, which gives everything to one reader only."""
    try:
        return not path.startswith("/proc/") and stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _is_protected(path: str) -> bool:
    from trimtab.contracts.protected import AGENT_FOLDERS, NAMES, TAILS

    folded = path.translate(_INVISIBLE).casefold()
    parts = [part.rstrip(". ") or part for part in folded.split(os.sep) if part]
    if "worktrees" in parts:
        parts = _leave_worktrees(parts, AGENT_FOLDERS)
    if parts[-1:] == ["index.lock"] and ".git" in parts:
        parts = parts[: parts.index(".git")]  # what a git leaves that was killed starts nothing
    if any(part in NAMES for part in parts):
        return True
    return any(pair in TAILS for pair in pairwise(parts))


def _leave_worktrees(parts: list[str], agents: Collection[str]) -> list[str]:
    """Return what stands below the last worktree that an agent keeps among its own files.

    Such a worktree (`.claude/worktrees/NAME`) is a checkout like any other.
    """
    for end in range(len(parts) - 1, 1, -1):
        if parts[end - 1] == "worktrees" and parts[end - 2] in agents:
            return parts[end + 1 :]
    return parts


def refuse_special(path: str, real: str | None = None) -> str | None:
    """Return why a path is not an ordinary file or folder, or None; `real` is the resolved path."""
    if len(path) > LONGEST:
        return f"{path[:100]}… is too long for a path"
    real = real or resolve(path)
    for name in (os.path.normpath(path), real):
        top = name.split(os.sep)[1:2]
        if top in (["proc"], ["sys"]):
            return f"{path} is not a file but the kernel's (/{top[0]})"
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        kind = 0
    if kind in _SPECIAL:
        return f"{path} is {_SPECIAL[kind]}"
    if real.startswith("/dev/") and kind not in (stat.S_IFREG, stat.S_IFDIR):
        return f"{path} is in the folder of devices"
    return None


def is_attached_image(path: str, images: Collection[str]) -> bool:
    """Return True if a path leads to one of these files, which are no links, and is an image."""
    if not images or (real := resolve(path)) not in images:
        return False
    try:
        with open(real, "rb") as file:
            return image_type(file.read(HEAD)) is not None
    except OSError:
        return False


def is_own_file(path: str, session_folder: str) -> bool:
    """Return True for the plan and the artifacts of a session, in its own folder."""
    if not session_folder:
        return False
    return is_inside(path, (os.path.join(session_folder, name) for name in _SESSION_FILES))


def is_in_home(path: str, homes: Iterable[str], session_folder: str) -> bool:
    """Return True if a path is in a folder of the agent that tools never write."""
    if is_own_file(path, session_folder):
        return False
    held = (*homes, session_folder) if session_folder else tuple(homes)
    return is_inside(path, held)
