"""Stores facts for later sessions: lines of JSON, a file for the person and one per repository."""

import os
from typing import Literal

import msgspec

Scope = Literal["repository", "user"]
MAX_BYTES = 256 * 1024
"""Bytes of a file; more than a model can read at once."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A fact. `citations` name its sources."""

    subject: str
    fact: str
    citations: str = ""
    reason: str = ""


class MemoriesFull(Exception):
    """Raised when a file has no room for another fact."""


class Memories:
    """The facts of a person. `repository` is the root of the repository, or ""."""

    def __init__(self, folder: str, repository: str = "") -> None:
        self._folder = folder
        self.repository = repository

    def path(self, scope: Scope) -> str:
        if scope == "user":
            return os.path.join(self._folder, "user.jsonl")
        # The name contains the path, so that a person can find the file.
        name = self.repository.replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self._folder, "repositories", f"{name}.jsonl")

    def read(self, scope: Scope) -> list[Memory]:
        """Return all facts, the oldest first, without invalid lines."""
        if scope == "repository" and not self.repository:
            return []
        try:
            with open(self.path(scope), "rb") as file:
                lines = file.read(2 * MAX_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        found: list[Memory] = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=Memory))
            except msgspec.DecodeError:
                continue
        return found

    def add(self, scope: Scope, memory: Memory) -> bool:
        """Add a fact; return False if it exists already. Raises `OSError` and `MemoriesFull`."""
        if any(known.fact == memory.fact for known in self.read(scope)):
            return False
        path = self.path(scope)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # The newline before it separates it from a line that was not written completely.
        data = b"\n" + msgspec.json.encode(memory) + b"\n"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) > MAX_BYTES:
                raise MemoriesFull
            os.write(fd, data)
        finally:
            os.close(fd)
        return True
