"""Arguments for bubblewrap: a file system in which only the policy's paths are writable."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from trimtab.workspace.sandbox.deeper import find_deeper, find_modules
from trimtab.workspace.sandbox.mounts import NO_DEVICES, NO_SET_ID, READ_ONLY, MountNamespace
from trimtab.workspace.sandbox.policy import (
    GIT_PARTS,
    SandboxPolicy,
    find_git,
    find_protected,
    read_settings,
)
from trimtab.workspace.sandbox.policy import existing as existing_ones

ROOT_MAY = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""The capabilities left to root: to own files, but not to change the machine."""
FOLDERS = frozenset(
    (
        *(".agents", ".claude", ".codex", ".continue", ".copilot", ".cursor", ".devcontainer"),
        *(".gemini", ".husky", ".idea", ".kiro", ".opencode", ".vscode", ".windsurf", "agents"),
        *("copilot", "extensions", "hooks", "plugins", "prompts", "skills", "tools"),
    )
)
"""Protected names of folders."""
EMPTY = "empty"
"""An empty file in the agent's own folder."""
SOCKETS = ("tmux-", "ssh-", ".X11-unix", ".ICE-unix", "dbus-", "screen")
"""Names of sockets in the temp directory through which programs outside accept commands."""


class Frame(msgspec.Struct, kw_only=True):
    """The arguments for a command, and the mount points that bubblewrap leaves on disk."""

    argv: list[str]
    tail: list[str]
    """Arguments after those for the covers."""
    covers: list[tuple[str, str]]
    """Read-only mounts by path: files that must not change, or /dev/null."""
    folders: list[str]
    """Names of folders that do not exist and must not be made."""
    left: list[str]
    left_folders: list[str]
    ignored: list[str]
    """Names hidden from git, which fails on devices in a working tree."""
    exclude: str = ""
    empty: str = "/dev/null"
    """The cover of a name that programs read if it exists, and complain of if they cannot."""

    def list_arguments(self, *, mounted: bool = False) -> list[str]:
        """Return all arguments, without the covers if they are `mounted` already."""
        if mounted:
            return [*self.argv, *self.tail]
        # Bubblewrap takes a fifth of a millisecond for a bind, and much less for a new folder.
        made = [word for path in self.folders for word in ("--perms", "0555", "--tmpfs", path)]
        binds = [word for pair in self.covers for word in ("--ro-bind", *pair)]
        return [*self.argv, *made, *binds, *self.tail]


def frame(policy: SandboxPolicy, program: str) -> Frame:
    """Return the arguments to start a command. Later mounts cover earlier ones."""
    made = Frame(
        argv=[program], tail=[], covers=[], folders=[], left=[], left_folders=[], ignored=[]
    )
    made.empty = find_empty(policy)
    add = made.argv.extend
    add(("--unshare-pid", "--unshare-ipc", "--unshare-uts"))
    add(() if policy.network else ("--unshare-net",))
    add(("--cap-drop", "ALL"))
    if os.geteuid() == 0:
        add(word for name in ROOT_MAY for word in ("--cap-add", f"CAP_{name}"))
    add(("--ro-bind", "/", "/", "--dev", "/dev", *mount_proc()))
    hide_sockets(made, policy)
    for path in existing_ones((*policy.roots, *policy.writable)):
        add(("--bind", path, path))
    for root in existing_ones(policy.roots):
        protect(made, root)
    for path in existing_ones((*policy.read_only, *policy.own)):
        made.tail += ["--ro-bind", path, path]
    for path in existing_ones(policy.session):
        made.tail += ["--bind", path, path]
    for path in policy.denied:
        deny(made, path, policy)
    if not policy.network:
        made.covers += [("/dev/null", path) for path in listening_sockets()]
    return made


def mount_proc() -> list[str]:
    """Return the arguments that show processes. Root may not change settings of the kernel."""
    settings = ["--ro-bind-try", "/proc/sys", "/proc/sys"] if os.geteuid() == 0 else []
    return ["--proc", "/proc", *settings]


def hide_sockets(made: Frame, policy: SandboxPolicy) -> None:
    """Hide sockets of programs outside: /run is empty, and so are known folders in temp."""
    names = os.path.realpath("/etc/resolv.conf")
    made.argv += ["--tmpfs", "/run"]
    if names.startswith("/run/") and os.path.exists(names):
        made.argv += ["--ro-bind", names, names]
    if not policy.temp:
        made.argv += ["--tmpfs", "/tmp"]  # noqa: S108 - an empty one, seen by this command only
        if sys.prefix.startswith("/tmp/"):  # noqa: S108 - the search program is installed there
            made.argv += ["--ro-bind", sys.prefix, sys.prefix]
        return
    temp = os.path.realpath(policy.temp)
    made.argv += ["--bind", temp, temp]
    with os.scandir(temp) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                made.argv += ["--tmpfs", entry.path] if entry.name.startswith(SOCKETS) else []
            elif is_socket(entry):
                made.argv += ["--ro-bind", "/dev/null", entry.path]


def listening_sockets() -> list[str]:
    """Return the sockets of programs on this machine, outside the folders hidden as a whole.

    Connecting to a socket needs neither network nor a writable file system. Sockets of earlier
    sandboxed commands are not listed: they are in namespaces of their own.
    """
    found = []
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            paths = {line.rstrip("\n").partition(" /")[2] for line in file}
    except OSError:
        return []
    for path in sorted(f"/{path}" for path in paths if path):
        real = os.path.realpath(path)
        with suppress(OSError):  # gone, or not readable
            if not real.startswith(("/run/", "/dev/")) and stat.S_ISSOCK(os.lstat(real).st_mode):
                found.append(real)
    return list(dict.fromkeys(found))


def is_socket(entry: os.DirEntry[str]) -> bool:
    """Test an entry; stat only what is neither file nor link, of which there may be thousands."""
    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:  # gone again
        return False


def protect(made: Frame, root: str) -> None:
    """Protect files that could cause code to run later, also those that do not exist yet."""
    git = find_git(root)
    if git is None:
        cover(made, os.path.join(root, ".git"), root)
    else:
        for folder in dict.fromkeys((git.folder, git.common)):
            # Mounted on itself, it cannot be moved away and replaced.
            made.argv += ["--bind", folder, folder]
            for name in GIT_PARTS:
                cover(made, os.path.join(folder, name), root)
        hooks = find_hooks_folder(git.common, root)
        if hooks:
            cover(made, hooks, root)
        made.exclude = os.path.join(git.common, "info", "exclude")
        keep(made, find_modules(git.common))
    parents = {os.path.dirname(path) for path in find_protected(root)} - {root}
    for path in sorted(parents):
        if os.path.isdir(path) and not os.path.islink(path):
            made.argv += ["--bind", path, path]
    for path in find_protected(root):
        if os.path.isdir(os.path.dirname(path)) or os.path.dirname(path).endswith(".github"):
            cover(made, path, root)
    keep(made, find_deeper(root))


def find_hooks_folder(git: str, root: str) -> str:
    """Return the folder that `core.hooksPath` names, if it is in the workspace."""
    value = read_settings(git).get("hookspath")
    if value is None:
        return ""
    path = os.path.normpath(os.path.join(root, value))
    return path if path.startswith(root + os.sep) else ""


def keep(made: Frame, paths: Iterable[str]) -> None:
    """Make existing paths read-only.

    Its folders are not mounted on themselves: files could no longer be renamed into or out of them.
    """
    for path in paths:
        if not os.path.islink(path):
            made.covers.append((path, path))


def cover(made: Frame, path: str, root: str) -> None:
    if os.path.exists(path):
        made.covers.append((path, path))
    elif not os.path.lexists(path):
        # Root could write into a folder that only its mode protects.
        if is_folder_name(path) and os.geteuid() != 0:
            made.folders.append(path)
            made.left_folders.append(path)
        else:
            source = made.empty if os.path.basename(path) == ".gitmodules" else "/dev/null"
            made.covers.append((source, path))
            made.left.append(path)
        folder = os.path.dirname(path)
        if not os.path.lexists(folder) and folder not in made.left_folders:
            made.left_folders.append(folder)
        made.ignored.append("/" + os.path.relpath(path, root))


def find_empty(policy: SandboxPolicy) -> str:
    """Return an empty file that no command can change, or a device if there is none."""
    for folder in policy.own[-1:]:
        path = os.path.join(folder, EMPTY)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
        with suppress(OSError):
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_size == 0:
                return path
    return "/dev/null"


def is_folder_name(path: str) -> bool:
    """Return True for a protected name that a folder has, not a file."""
    return os.path.basename(path) in FOLDERS


def deny(made: Frame, path: str, policy: SandboxPolicy) -> None:
    for name in dict.fromkeys((path, os.path.realpath(path))):
        if os.path.islink(name):
            continue
        if os.path.isdir(name):
            made.tail += ["--perms", "0000", "--tmpfs", name, "--remount-ro", name]
        elif os.path.exists(name):
            made.tail += ["--ro-bind", "/dev/null", name]
            made.ignored += ["/" + os.path.relpath(name, root) for root in policy.roots]
        elif any(name.startswith(folder + os.sep) for folder in policy.all_writable):
            cover(made, name, os.path.dirname(name))


def clean(files: Iterable[str], folders: Iterable[str]) -> None:
    """Remove the empty mount points, and the folders created for them."""
    for path in files:
        with suppress(OSError):  # it was not created after all
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_size == 0:
                os.unlink(path)
    for path in sorted(folders, key=len, reverse=True):
        with suppress(OSError):  # it is not empty
            os.rmdir(path)


def mount_covers(covers: Iterable[tuple[str, str]]) -> None:
    """Mount covers in a mount namespace of the calling thread, which root may. Raises `OSError`.

    What is started from the thread then finds them in place: bubblewrap carries them over.
    """
    namespace = MountNamespace()
    for source, target in covers:
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
        namespace.bind(source, target)
        namespace.restrict(target, READ_ONLY | NO_SET_ID | NO_DEVICES)
