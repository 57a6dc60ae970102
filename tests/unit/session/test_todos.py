"""The to-do list of a session, in its file or in the database of a client."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from trimtab.contracts.sql import Outcome, Refusal, Statement
from trimtab.session.todos import Todos, read_table, read_todos


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "a ?#%.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE todos (id, title)")
        database.execute("INSERT INTO todos VALUES ('a', 'One'), ('b', 'Two')")
        database.commit()
    return path


TODOS = [{"id": "a", "title": "One"}, {"id": "b", "title": "Two"}]


async def test_the_list_is_read_from_the_file(path: str) -> None:
    assert read_todos(path) == (TODOS, [])
    assert await Todos(path).read_all() == (TODOS, [])
    assert read_table(path + "x", "todos") == []
    assert not Path(path + "x").exists()
    Path(path).write_bytes(b"rubbish" * 1000)
    assert read_todos(path) == ([], [])


def test_the_version_of_a_file_changes_with_it(path: str) -> None:
    todos = Todos(path)
    before = todos.find_version()
    assert before == todos.find_version() is not None
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE todo_deps (todo_id, depends_on)")
        database.commit()
    assert todos.find_version() != before
    assert Todos(path + "x").find_version() is None


class Database:
    """A database that a client keeps."""

    def __init__(self, *columns: str) -> None:
        self.changes = 0
        self.asked: list[str] = []
        self._columns = columns

    async def run(self, statements: Sequence[Statement]) -> list[Outcome]:
        (statement,) = statements
        self.asked.append(statement.text)
        if statement.text.endswith("todo_deps"):
            raise Refusal("no such table")
        rows = [("a", "One"), ("b", "Two")] if self._columns else ()
        return [Outcome(verb="SELECT", columns=self._columns or None, rows=rows)]


async def test_the_list_is_read_from_the_database_of_a_client(path: str) -> None:
    database = Database("id", "title")
    todos = Todos(path + "x", database)
    assert await todos.read_all() == (TODOS, [])
    assert database.asked == ["SELECT * FROM todos", "SELECT * FROM todo_deps"]
    assert todos.find_version() == 0
    database.changes = 7
    assert todos.find_version() == 7
    assert await Todos("", Database()).read("todos") == []
    short = Todos("", Database("id"))
    assert await short.read("todos") == [{"id": "a"}, {"id": "b"}]
