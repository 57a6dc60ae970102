"""The to-do list of a session, as the model keeps it in the session's database."""

import asyncio
import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from trimtab.contracts.sql import SqlDatabase

Table = Literal["todos", "todo_deps"]
Rows = list[dict[str, Any]]


class Todos:
    """Reads the list from the session's file, or from the database that its client keeps."""

    def __init__(self, path: str, database: "SqlDatabase | None" = None) -> None:
        self._path = path
        self._database = database

    def find_version(self) -> object:
        """Return something that differs whenever the list may have changed."""
        if self._database is not None:
            return self._database.changes
        with suppress(OSError):
            info = os.stat(self._path)
            return info.st_ino, info.st_size, info.st_mtime_ns
        return None

    async def read(self, table: Table) -> Rows:
        """Return all rows of a table; none if it does not exist or cannot be read."""
        if self._database is None:
            return await asyncio.to_thread(read_table, self._path, table)
        from trimtab.contracts.sql import Refusal, Statement

        # The table's name is one of two literals.
        query = Statement(f"SELECT * FROM {table}", "SELECT")  # noqa: S608
        try:
            (outcome,) = await self._database.run((query,))
        except Refusal:
            return []
        return [dict(zip(outcome.columns or (), row, strict=False)) for row in outcome.rows]

    async def read_all(self) -> tuple[Rows, Rows]:
        """Return the to-dos and their dependencies."""
        return await self.read("todos"), await self.read("todo_deps")


def read_table(path: str, table: Table) -> Rows:
    """Return all rows of a table; none if there is no such database or table yet."""
    if not os.path.isfile(path):
        return []
    import sqlite3
    from urllib.parse import quote

    address = f"file:{quote(path)}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=1)) as database:
            database.row_factory = sqlite3.Row
            # The table's name is one of two literals.
            found = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
    except sqlite3.Error:
        return []
    return [dict(row) for row in found]


def read_todos(path: str) -> tuple[Rows, Rows]:
    """Return the to-dos and their dependencies."""
    return read_table(path, "todos"), read_table(path, "todo_deps")
