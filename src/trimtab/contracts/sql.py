"""SQL of a session: statements, their outcomes, and the port to the database that runs them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Statement(msgspec.Struct, frozen=True):
    """A statement; `verb` is its first word, in capitals."""

    text: str
    verb: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a statement. `columns` is None unless it returns rows."""

    verb: str
    changed: int = 0
    last_id: int | None = None
    columns: tuple[str, ...] | None = None
    rows: Sequence[tuple[object, ...]] = ()
    more: bool = False


class Refusal(Exception):
    """Raised when statements failed. The message is for the model."""


class SqlDatabase(Protocol):
    """A database that is not a file of this machine, such as one that a client keeps."""

    @property
    def changes(self) -> int:
        """The number of runs that may have changed something."""
        ...

    async def run(self, statements: Sequence[Statement]) -> list[Outcome]:
        """Run all statements or none. Raises `Refusal`."""
        ...
