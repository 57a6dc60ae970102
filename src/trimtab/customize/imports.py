"""`@path` in an instruction file brings another file's text along, within limits."""

import os
import re
from functools import lru_cache

import msgspec

from trimtab.contracts.customization import Problem
from trimtab.customize.places import Boundary
from trimtab.customize.reading import read_text

DEEPEST = 5
MOST_BYTES = 256 * 1024
MOST_FILES = 64


class Imported(msgspec.Struct, frozen=True):
    """A text with what it imports appended, the files that came along, and what went wrong."""

    text: str
    files: tuple[str, ...]
    problems: tuple[Problem, ...]


def resolve_imports(text: str, path: str, boundary: Boundary) -> Imported:
    """Append every file that `text` mentions as `@path`, and those that they mention."""
    if "@" not in text:
        return Imported(text, (), ())
    job = _Import(boundary)
    job.open.append(os.path.realpath(path))
    job.follow(text, path, 1)
    return Imported(
        "\n\n".join([text.rstrip(), *job.blocks]), tuple(job.files), tuple(job.problems)
    )


class _Import:
    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.blocks: list[str] = []
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.left = MOST_BYTES

    def follow(self, text: str, path: str, depth: int) -> None:
        for line, mention in find_mentions(text):
            target = self._target(mention, path)
            if target is None:
                if mention.endswith((".md", ".mdc", ".txt")):
                    self._note(f"@{mention} does not exist", path, line)
                continue
            real = os.path.realpath(target)
            if real in self.open:
                message = f"@{mention} is not imported again: it leads here"
                self.problems.append(Problem(message=message, file=path, line=line, note=True))
            elif refusal := self._refuse(target, depth):
                self._note(f"@{mention} {refusal}", path, line)
            elif real not in self.seen:
                self.seen.add(real)
                self.open.append(real)
                self._take(target, mention, depth)
                self.open.pop()

    def _target(self, mention: str, path: str) -> str | None:
        home = self.boundary.user
        name = home + mention[1:] if mention.startswith("~/") else mention
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        return target if os.path.isfile(target) else None

    def _refuse(self, target: str, depth: int) -> str:
        if not self.boundary.allows(target):
            return "is not imported: it lies outside this repository"
        if depth > DEEPEST:
            return f"is not imported: imports go at most {DEEPEST} files deep"
        if self.left <= 0 or len(self.files) >= MOST_FILES:
            return f"is not imported: {MOST_BYTES // 1024} KB in {MOST_FILES} files are the limit"
        return ""

    def _take(self, target: str, mention: str, depth: int) -> None:
        text, problems = read_text(target, min(self.left, MOST_BYTES))
        self.problems += problems
        self.left -= len(text.encode("utf-8", "replace"))
        if text.strip():
            self.files.append(target)
            self.blocks.append(f'<imported path="{mention}">\n{text.strip()}\n</imported>')
            self.follow(text, target, depth + 1)

    def _note(self, message: str, path: str, line: int) -> None:
        self.problems.append(Problem(message=message, file=path, line=line))


@lru_cache(1)
def _mention() -> re.Pattern[str]:
    return re.compile(r"(?<![\w`@/.])@((?:~/)?[\w./+-]*[\w/+-])")


def find_mentions(text: str) -> list[tuple[int, str]]:
    """Line and path of every `@path` that does not stand in code."""
    found: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and (not fence or mark == fence):
            fence = "" if fence else mark
        elif not fence and "@" in line:
            plain = re.sub(r"`[^`]*`", "", line)
            found += [(number, match[1]) for match in _mention().finditer(plain)]
    return found
