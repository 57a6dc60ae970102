"""The place an agent works in, as tools see it: files, search, processes."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a shell command has come to so far. `exit_code` is None while it runs."""

    output: str
    exit_code: int | None
    shell_id: str
    truncated_to: str | None = None


class Workspace(Protocol):
    """Files and processes below one root. The root is a value an agent carries, never process state."""

    root: str

    def resolve(self, path: str) -> str:
        """An absolute path for what a model wrote, relative to the root. Symlinks are kept."""
        ...

    async def read(self, path: str) -> bytes: ...

    async def write(self, path: str, data: bytes) -> None:
        """Replace or create a file atomically; mode, owner and links of an existing one are kept."""
        ...

    async def run(
        self, argv: Sequence[str], *, timeout: float, limit: int = 1_000_000
    ) -> tuple[int, bytes]:
        """Run a helper program (search, git) and give its exit code and at most `limit` bytes."""
        ...
