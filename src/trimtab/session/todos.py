"""The to-do list of a session, as the model keeps it in the session's database."""

import os
from contextlib import closing
from typing import Any, Literal


def read_table(path: str, table: Literal["todos", "todo_deps"]) -> list[dict[str, Any]]:
    """Return all rows of a table; none if there is no such database or table yet."""
    if not os.path.isfile(path):
        return []
    import sqlite3
    from urllib.parse import quote

    address = f"file:{quote(path)}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=1)) as database:
            database.row_factory = sqlite3.Row
            # The table's name is one of the two literals in the signature.
            found = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
    except sqlite3.Error:
        return []
    return [dict(row) for row in found]


def read_todos(path: str) -> tuple[list[dict[str, Any]], ...]:
    """Return the to-dos and their dependencies."""
    return read_table(path, "todos"), read_table(path, "todo_deps")
