"""The cache of skills never returns a skill whose file has changed."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from customizekit import write
from trimtab.contracts.customization import FoundSkills
from trimtab.customize.folders import SkillFolder
from trimtab.customize.skill_cache import MAX_UNUSED, SkillCache
from trimtab.customize.skills import CACHE_FROM, find_skills

LATER = 60.0
"""Seconds after which nobody doubts that a file has settled."""


class Home:
    """Many skills, and a cache that says something else of the first than its file."""

    def __init__(self, folder: Path) -> None:
        self.skills = folder / "skills"
        self.cache = folder / "cache"
        for number in range(CACHE_FROM):
            self.write(number, f"number {number}")
        base = SkillFolder(path=str(self.skills), source="user", origin="personal-copilot")
        self.folders = [base]

    def write(self, number: int, description: str) -> Path:
        return write(self.path(number), f"---\ndescription: {description}\nlicense: MIT\n---\nx\n")

    def path(self, number: int) -> Path:
        return self.skills / f"s{number:03}/SKILL.md"

    def find(self) -> FoundSkills:
        return find_skills(self.folders, (), str(self.cache))

    def fill(self, now: float) -> None:
        """Keep what is there, the first with words of the cache's own."""
        cache = SkillCache(str(self.cache), self.folders, now)
        found = find_skills(self.folders)
        for name, skill in found.skills.items():
            told = "from the cache" if name == "s000" else skill.description
            wrong = [problem for problem in found.problems if problem.file == skill.path]
            kept = msgspec.structs.replace(skill, description=told)
            cache.put(os.stat(skill.path), name, kept, wrong)
        cache.save()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.fill(time.time() + LATER)
    return home


def test_what_is_kept_is_not_read_again(home: Home) -> None:
    found = home.find()
    assert found.skills["s000"].description == "from the cache"
    assert [problem.file for problem in found.problems] == [
        str(home.path(n)) for n in range(CACHE_FROM)
    ]


def test_a_changed_file_is_read_again(home: Home) -> None:
    home.write(0, "from the file")
    home.path(1).unlink()
    found = home.find()
    assert found.skills["s000"].description == "from the file"
    assert "s001" not in found.skills


def test_a_change_that_keeps_time_and_size_is_noticed(home: Home) -> None:
    before = home.path(0).stat()
    home.path(0).write_text(home.path(0).read_text().replace("number", "figure"))
    os.utime(home.path(0), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert home.find().skills["s000"].description == "figure 0"


def test_a_file_that_changed_only_now_is_not_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.fill(time.time())
    assert home.find().skills["s000"].description == "number 0"


@pytest.mark.parametrize("content", [b"", b"\xff" * 50, msgspec.msgpack.encode(["0.0.0", {}])])
def test_a_cache_that_cannot_be_used_is_none(home: Home, content: bytes) -> None:
    (file,) = home.cache.iterdir()
    file.write_bytes(content)
    assert home.find().skills["s000"].description == "number 0"


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.cache.write_text("a file in its place")
    home.fill(time.time() + LATER)
    assert len(home.find().skills) == CACHE_FROM


def test_caches_nobody_uses_any_more_are_removed(home: Home) -> None:
    (file,) = home.cache.iterdir()
    old = file.rename(file.with_name("skills-old.msgpack"))
    os.utime(old, (0, time.time() - MAX_UNUSED - 60))
    home.fill(time.time() + LATER)
    assert [cached.name for cached in home.cache.iterdir()] == [file.name]


def test_few_skills_leave_no_cache(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.path(0).unlink()
    home.path(0).parent.rmdir()
    assert len(home.find().skills) == CACHE_FROM - 1
    assert not home.cache.exists()
