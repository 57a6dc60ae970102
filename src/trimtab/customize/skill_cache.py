"""Caches parsed skills on disk, so that a session does not open thousands of files again."""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import msgspec

from trimtab.config.files import make_private_dir, read_regular, write_new_file
from trimtab.contracts.customization import Problem, Skill
from trimtab.contracts.errors import ConfigurationError
from trimtab.customize.folders import SkillFolder
from trimtab.version import __version__

MIN_AGE = 2.0
"""Seconds; a newer file may change again without a new time stamp, so it is not cached."""
MAX_BYTES = 64 * 1024 * 1024
MAX_UNUSED = 30 * 24 * 3600.0
"""Seconds after which an unused cache file is removed."""

Stamp = tuple[int, int, int, int]
"""A file's mtime, ctime, size and inode: if they are equal, its content is."""


class CachedSkill(msgspec.Struct, frozen=True, array_like=True):
    """A parsed skill with its problems, and the stamp of its file."""

    stamp: Stamp
    name: str
    skill: Skill
    problems: tuple[Problem, ...]


class CacheFile(msgspec.Struct, frozen=True, array_like=True):
    """The content of a cache file. Other versions ignore it: they may parse skills differently."""

    version: str
    files: dict[str, CachedSkill]


class SkillCache:
    """The cache for a list of skill folders. Errors of reading and writing it are ignored."""

    def __init__(self, folder: str, skill_folders: Sequence[SkillFolder], now: float) -> None:
        key = sha256(msgspec.msgpack.encode(skill_folders)).hexdigest()[:32]
        self._path = os.path.join(folder, f"skills-{key}.msgpack")
        self._now = now
        self._before = _load(self._path)
        self._after: dict[str, CachedSkill] = {}
        self._changed = False

    def get(
        self, path: str, name: str, info: os.stat_result
    ) -> tuple[Skill, Sequence[Problem]] | None:
        """Return the cached skill of a file, unless the file has changed."""
        cached = self._before.get(path)
        if cached is None or cached.stamp != _stamp(info) or cached.name != name:
            return None
        self._after[path] = cached
        return cached.skill, cached.problems

    def put(
        self, info: os.stat_result, name: str, skill: Skill, problems: Sequence[Problem]
    ) -> None:
        if max(info.st_mtime, info.st_ctime) < self._now - MIN_AGE:
            self._after[skill.path] = CachedSkill(_stamp(info), name, skill, tuple(problems))
            self._changed = True

    def save(self) -> None:
        """Write the cache if it changed, without syncing: losing it costs only time."""
        if not self._changed and len(self._after) == len(self._before):
            return
        folder = os.path.dirname(self._path)
        temporary = f"{self._path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        data = msgspec.msgpack.encode(CacheFile(__version__, self._after))
        with suppress(OSError, ConfigurationError):
            make_private_dir(folder)
            write_new_file(temporary, data, durable=False)
            os.replace(temporary, self._path)
            _remove_unused(folder, self._now)


def _stamp(info: os.stat_result) -> Stamp:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def _load(path: str) -> dict[str, CachedSkill]:
    try:
        loaded = msgspec.msgpack.decode(read_regular(path, MAX_BYTES), type=CacheFile)
    except (OSError, msgspec.DecodeError, ValueError):
        return {}
    return loaded.files if loaded.version == __version__ else {}


def _remove_unused(folder: str, now: float) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("skills-") and entry.stat().st_mtime < now - MAX_UNUSED:
                os.unlink(entry.path)
