"""Finds the names that a file has because its file system is mounted in several places."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

TABLE = "/proc/self/mountinfo"
ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(msgspec.Struct, frozen=True):
    """A part of a file system, and where it is shown."""

    device: str
    part: str
    place: str


def find_aliases(paths: Iterable[str]) -> list[str]:
    """Return further names of existing files, by other mounts (`mount --bind`)."""
    try:
        with open(TABLE, encoding="utf-8", errors="surrogateescape") as file:
            mounts = read_table(file)
    except OSError:  # not Linux
        return []
    if len({mount.device for mount in mounts}) == len(mounts):
        return []
    found = []
    for path in paths:
        for alias in list_aliases(path, mounts):
            with suppress(OSError):
                found += [alias] if os.path.samefile(alias, path) else []
    return found


def read_table(lines: Iterable[str]) -> list[Mount]:
    """Return the mounts of a table; a later one covers an earlier one."""
    fields = (line.split(" ")[2:5] for line in lines)
    return [Mount(device, unescape(part), unescape(place)) for device, part, place in fields]


def list_aliases(path: str, mounts: Sequence[Mount]) -> Iterator[str]:
    """Yield the names that a path has by other mounts of what it is on."""
    own = None
    for mount in mounts:
        rest = find_rest(path, mount.place)
        if rest is not None and (own is None or len(mount.place) >= len(own.place)):
            own = mount
    if own is None:
        return
    inner = join(own.part, find_rest(path, own.place) or "")
    for mount in mounts:
        rest = find_rest(inner, mount.part) if mount.device == own.device else None
        if rest is not None and (alias := join(mount.place, rest)) != path:
            yield alias


def find_rest(path: str, folder: str) -> str | None:
    """Return the part of a path below a folder, None if it is not there."""
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


def join(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest}" if rest else folder


def unescape(text: str) -> str:
    return ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
