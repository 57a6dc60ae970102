"""Imports the files that an instruction file mentions as `@path`, within limits."""

import os
import re
from functools import lru_cache

import msgspec

from trimtab.contracts.customization import Problem
from trimtab.customize.places import Boundary
from trimtab.customize.reading import read_text

MAX_DEPTH = 5
MAX_BYTES = 256 * 1024
MAX_FILES = 64


class Imported(msgspec.Struct, frozen=True):
    """A text with its imports appended, the imported files, and the problems."""

    text: str
    files: tuple[str, ...]
    problems: tuple[Problem, ...]


def resolve_imports(text: str, path: str, boundary: Boundary) -> Imported:
    """Append every file that `text` mentions as `@path`, and those that they mention."""
    if "@" not in text:
        return Imported(text, (), ())
    importer = _Importer(boundary)
    importer.open.append(os.path.realpath(path))
    importer.follow(text, path, 1)
    whole = "\n\n".join([text.rstrip(), *importer.blocks])
    return Imported(whole, tuple(importer.files), tuple(importer.problems))


class _Importer:
    """Follows imports. `open` are the files on the way from the first to the current one."""

    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.blocks: list[str] = []
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.left = MAX_BYTES

    def follow(self, text: str, path: str, depth: int) -> None:
        for line, mention in find_mentions(text):
            target = self._target(mention, path)
            if target is None:
                if mention.endswith((".md", ".mdc", ".txt")):
                    self._add_problem(f"@{mention} does not exist", path, line)
                continue
            real = os.path.realpath(target)
            if real in self.open:
                message = f"@{mention} is not imported again: it imports this file"
                self.problems.append(Problem(message=message, file=path, line=line, note=True))
            elif refusal := self._refuse(target, depth):
                self._add_problem(f"@{mention} {refusal}", path, line)
            elif real not in self.seen:
                self.seen.add(real)
                self.open.append(real)
                self._append(target, mention, depth)
                self.open.pop()

    def _target(self, mention: str, path: str) -> str | None:
        home = self.boundary.user
        name = home + mention[1:] if mention.startswith("~/") else mention
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        return target if os.path.isfile(target) else None

    def _refuse(self, target: str, depth: int) -> str:
        if not self.boundary.allows(target):
            return "is not imported: it is outside this repository"
        if depth > MAX_DEPTH:
            return f"is not imported: imports are followed at most {MAX_DEPTH} files deep"
        if self.left <= 0 or len(self.files) >= MAX_FILES:
            return f"is not imported: the limit is {MAX_BYTES // 1024} KB in {MAX_FILES} files"
        return ""

    def _append(self, target: str, mention: str, depth: int) -> None:
        text, problems = read_text(target, min(self.left, MAX_BYTES))
        self.problems += problems
        self.left -= len(text.encode("utf-8", "replace"))
        if text.strip():
            self.files.append(target)
            self.blocks.append(f'<imported path="{mention}">\n{text.strip()}\n</imported>')
            self.follow(text, target, depth + 1)

    def _add_problem(self, message: str, path: str, line: int) -> None:
        self.problems.append(Problem(message=message, file=path, line=line))


@lru_cache(1)
def _mention() -> re.Pattern[str]:
    return re.compile(r"(?<![\w`@/.])@((?:~/)?[\w./+-]*[\w/+-])")


def find_mentions(text: str) -> list[tuple[int, str]]:
    """Return line and path of every `@path` outside of code."""
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
