"""Keeps what was read of many skills, so that a session need not open thousands of files again."""

import os
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from trimtab.config.files import make_private_dir, read_regular, write_new_file
from trimtab.contracts.customization import Problem, Skill
from trimtab.contracts.errors import ConfigurationError
from trimtab.customize.folders import SkillFolder
from trimtab.version import __version__

SETTLED = 2.0
"""Seconds: a file changed only now may change again without looking different."""
LARGEST = 64 * 1024 * 1024
FORGOTTEN = 30 * 24 * 3600.0
"""Seconds after which the cache of a place nobody works in any more is removed."""

Mark = tuple[int, int, int, int]
"""What a file looks like from outside: when it changed (content, anything), size, which it is."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What one file came to, and what it looked like then."""

    mark: Mark
    name: str
    skill: Skill
    problems: tuple[Problem, ...]


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """The file of a cache. Another version may read the same skill otherwise."""

    version: str
    files: dict[str, Kept]


class SkillCache:
    """What the files of some folders came to. A cache that cannot be read or written is none."""

    def __init__(self, folder: str, skill_folders: Sequence[SkillFolder], now: float) -> None:
        from hashlib import sha256

        key = sha256(msgspec.msgpack.encode(skill_folders)).hexdigest()[:32]
        self._path = os.path.join(folder, f"skills-{key}.msgpack")
        self._now = now
        self._before = _load(self._path)
        self._after: dict[str, Kept] = {}
        self._changed = False

    def get(
        self, path: str, name: str, info: os.stat_result
    ) -> tuple[Skill, Sequence[Problem]] | None:
        """What a file came to, unless it was changed since."""
        kept = self._before.get(path)
        if kept is None or kept.mark != _mark(info) or kept.name != name:
            return None
        self._after[path] = kept
        return kept.skill, kept.problems

    def put(
        self, info: os.stat_result, name: str, skill: Skill, problems: Sequence[Problem]
    ) -> None:
        if max(info.st_mtime, info.st_ctime) < self._now - SETTLED:
            self._after[skill.path] = Kept(_mark(info), name, skill, tuple(problems))
            self._changed = True

    def save(self) -> None:
        """Write what changed. Losing it costs time only, so nothing waits for the disk."""
        if not self._changed and len(self._after) == len(self._before):
            return
        folder = os.path.dirname(self._path)
        temporary = f"{self._path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        data = msgspec.msgpack.encode(Stored(__version__, self._after))
        with suppress(OSError, ConfigurationError):
            make_private_dir(folder)
            write_new_file(temporary, data, durable=False)
            os.replace(temporary, self._path)
            _forget(folder, self._now)


def _mark(info: os.stat_result) -> Mark:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def _load(path: str) -> dict[str, Kept]:
    try:
        stored = msgspec.msgpack.decode(read_regular(path, LARGEST), type=Stored)
    except (OSError, msgspec.DecodeError, ValueError):
        return {}
    return stored.files if stored.version == __version__ else {}


def _forget(folder: str, now: float) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("skills-") and entry.stat().st_mtime < now - FORGOTTEN:
                os.unlink(entry.path)
