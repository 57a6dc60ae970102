"""Repositories among the files of the workspace, whose settings and hooks make git start programs.

A clone cannot bring them along, but an archive can.
"""

import os
import re
import time
from collections.abc import Container, Iterator
from contextlib import suppress

import msgspec

MAX_FOLDERS = 200_000
MAX_SECONDS = 1.0
_MAX_INDEX = 1 << 28
_LINK = b"\x00\x00\xe0\x00"
"""The mode of a commit of another repository, in git's index."""
_MAX_CONFIG = 1 << 20
_HARMLESS = rb"""(?!\s*(?:(?:true|false|cat|checkout|rebase|merge|none|less|vim?|nano
    |git[- ]lfs[ ][\w %.-]*|\"\")?[ \t\r]*(?:[\#;].*)?$))"""
_STARTING = re.compile(
    rb"""^\s*(?:\[include|[\w-]+\s*=\s*\"?!|(?:\[[^]]*\]\s*)?(?:fsmonitor|hookspath|sshcommand
    |askpass|gitproxy|editor|pager|external|textconv|command|driver|diff|clean|smudge|process
    |program|helper|cmd|vcs|uploadpack|receivepack|packobjectshook|alternaterefscommand|update)
    \s*="""
    + _HARMLESS
    + rb")",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
"""A setting of git by which it starts a program, or reads more settings."""
_LOOKED_AT = re.compile(
    rb"""^\s*(?:\[include|(?:\[[^]]*\]\s*)?(?:fsmonitor|hookspath|clean|smudge|process)\s*="""
    + _HARMLESS
    + rb")",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
"""One that counts even if git only looks whether files of a repository have changed."""
_HOOKS_PATH = re.compile(
    rb"^\s*(?:\[[^]]*\]\s*)?hookspath\s*=\s*\"?([^\"\r\n]*)", re.MULTILINE | re.IGNORECASE
)
_LOOKING_HOOK = "post-index-change"


def starts_programs(folder: str) -> bool:
    """Return True if the settings or hooks of a repository make git start programs."""
    git = _find_git(folder)
    if any(_STARTING.search(settings) for settings in _read_settings(git)):
        return True
    with suppress(OSError), os.scandir(f"{git}/hooks") as hooks:
        return any(not hook.name.endswith(".sample") for hook in hooks)
    return False


class _Listing(msgspec.Struct, frozen=True):
    """The folders in a folder, and whether it is a repository, as of its last change."""

    changed: tuple[int, ...]
    names: tuple[str, ...] = ()
    is_repository: bool = False


_listings: dict[str, _Listing] = {}
"""The known folders; one that has not changed since is not read again."""


def find_starting(top: str, skipped: Container[str] = ()) -> str | None:
    """Return a repository below a folder by which git starts programs when it looks for changes.

    Folders with `skipped` names are left out, unless git's index names other repositories. Empty
    if there is none, None if the folder is too large to be searched.
    """
    if holds_links(top):
        skipped = ()
    deadline, count, folders = time.monotonic() + MAX_SECONDS, 0, [top]
    while folders:
        folder = folders.pop()
        count += 1
        if count > MAX_FOLDERS or time.monotonic() > deadline:
            return None
        listing = _list(folder)
        if listing.is_repository and folder != top and _starts_when_looked_at(folder):
            return folder
        folders += [f"{folder}/{name}" for name in listing.names if name not in skipped]
    return ""


def holds_links(top: str) -> bool:
    """Return True if the index of a repository may name commits of other repositories."""
    git = _find_git(top)
    shared = [name for name in _list_names(git) if name.startswith("sharedindex.")]
    for path in (f"{git}/{name}" for name in ("index", *shared)):
        with suppress(OSError), open(path, "rb") as file:
            data = file.read(_MAX_INDEX)
            if _LINK in data or len(data) == _MAX_INDEX:
                return True
    return False


def _list(folder: str) -> _Listing:
    try:
        about = os.lstat(folder)
        changed = about.st_dev, about.st_ino, about.st_ctime_ns
        known = _listings.get(folder)
        if known is not None and known.changed == changed:
            return known
        with os.scandir(folder) as entries:
            names = tuple(e.name for e in entries if e.name == ".git" or _is_folder(e))
    except OSError:  # gone, or not ours to read
        return _Listing(())
    if len(_listings) > MAX_FOLDERS:
        _listings.clear()
    below = tuple(name for name in names if name != ".git")
    listing = _listings[folder] = _Listing(changed, below, len(below) < len(names))
    return listing


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _starts_when_looked_at(folder: str) -> bool:
    git = _find_git(folder)
    if os.path.lexists(f"{git}/hooks/{_LOOKING_HOOK}"):
        return True
    for settings in _read_settings(git):
        for match in _LOOKED_AT.finditer(settings):
            if b"hookspath" not in match[0].lower():
                return True
        for named in _HOOKS_PATH.findall(settings):
            place = os.path.expanduser(os.fsdecode(named.strip()))
            if os.path.lexists(os.path.join(folder, place, _LOOKING_HOOK)):
                return True
    return False


def _find_git(folder: str) -> str:
    """Return the folder of a repository's data; a worktree or submodule only names it."""
    marker = f"{folder}/.git"
    if os.path.isfile(marker):
        with suppress(OSError), open(marker, encoding="utf-8", errors="surrogateescape") as file:
            return os.path.join(folder, file.readline(4096).removeprefix("gitdir:").strip())
    is_bare = not os.path.lexists(marker) and os.path.lexists(f"{folder}/HEAD")
    return folder if is_bare else marker


def _read_settings(git: str) -> Iterator[bytes]:
    """Yield the settings of a repository; what is too long counts as starting programs."""
    for name in ("config", "config.worktree"):
        path = f"{git}/{name}"
        if not os.path.isfile(path):  # a FIFO would not answer
            continue
        with suppress(OSError), open(path, "rb") as file:
            data = file.read(_MAX_CONFIG + 1)
            yield b"[include" if len(data) > _MAX_CONFIG else data.removeprefix(b"\xef\xbb\xbf")
