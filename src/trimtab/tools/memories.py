"""Facts that outlive a session: lines of JSON, a file for the person and one per repository."""

import os
from typing import Literal

import msgspec

Scope = Literal["repository", "user"]
LARGEST = 256 * 1024
"""Bytes a file may grow to: more than a model could read at once."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One fact; `citations` say where it comes from."""

    subject: str
    fact: str
    citations: str = ""
    reason: str = ""


class MemoriesFull(Exception):
    """There is no room for another fact."""


class Memories:
    """The facts of one person. `repository` is its root, empty where there is none."""

    def __init__(self, folder: str, repository: str = "") -> None:
        self._folder = folder
        self.repository = repository

    def path(self, scope: Scope) -> str:
        if scope == "user":
            return os.path.join(self._folder, "user.jsonl")
        # The path as a name, so that a person finds the file.
        name = self.repository.replace("%", "%25").replace(os.sep, "%2F")
        return os.path.join(self._folder, "repositories", f"{name}.jsonl")

    def read(self, scope: Scope) -> list[Memory]:
        """All facts, the oldest first; a line that cannot be read is passed over."""
        if scope == "repository" and not self.repository:
            return []
        try:
            with open(self.path(scope), "rb") as file:
                lines = file.read(2 * LARGEST).split(b"\n")
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
        """Keep a fact; False if it is there already. Raises `OSError` and `MemoriesFull`."""
        if any(one.fact == memory.fact for one in self.read(scope)):
            return False
        path = self.path(scope)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # It begins with a newline, so that half a line before it does not spoil it.
        data = b"\n" + msgspec.json.encode(memory) + b"\n"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) > LARGEST:
                raise MemoriesFull
            os.write(fd, data)
        finally:
            os.close(fd)
        return True
