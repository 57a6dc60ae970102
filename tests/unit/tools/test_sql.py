"""The `sql` tool: result texts, limits, and that it reaches nothing but its own file."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from toolkit import Bench
from trimtab.contracts.sql import Refusal
from trimtab.contracts.tool import ToolResult
from trimtab.tools.database import Database
from trimtab.tools.statements import split_statements

INSERT = "INSERT INTO todos (id, title) VALUES ('a', 'First'), ('b', 'Second')"


async def ask(bench: Bench, query: str) -> ToolResult:
    return await bench.call("sql", description="test", query=query)


async def text(bench: Bench, query: str) -> str:
    return (await ask(bench, query)).text


async def test_the_tables_of_the_to_do_list_are_there_at_first_use(bench: Bench) -> None:
    assert await text(bench, INSERT) == "2 row(s) inserted. Last inserted row ID: 2."
    assert await text(bench, "SELECT id, title, status FROM todos") == (
        "2 row(s) returned:\n\n| id | title | status |\n| --- | --- | --- |\n"
        "| a | First | pending |\n| b | Second | pending |"
    )
    columns = {
        row[1] for row in sqlite3.connect(bench.database).execute("PRAGMA table_info(todos)")
    }
    assert columns == {"id", "title", "description", "status", "created_at", "updated_at"}


async def test_each_kind_of_statement_has_its_own_answer(bench: Bench) -> None:
    await ask(bench, INSERT)
    assert await text(bench, "CREATE TABLE t (x)") == "Schema operation completed successfully."
    assert await text(bench, "UPDATE todos SET status = 'done'") == "2 row(s) updated."
    assert await text(bench, "DELETE FROM todos WHERE id = 'a'") == "1 row(s) deleted."
    assert await text(bench, "SELECT * FROM t") == "0 row(s) returned."


async def test_several_statements_are_numbered(bench: Bench) -> None:
    query = f"-- plan\n{INSERT};\nINSERT INTO todo_deps VALUES ('b', 'a'); SELECT id FROM todos;"
    assert await text(bench, query) == (
        "Executed 3 statement(s):\n\n"
        "1. INSERT\n   2 row(s) inserted. Last inserted row ID: 2.\n\n"
        "2. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.\n\n"
        "3. SELECT\n   2 row(s) returned:\n   \n   | id |\n   | --- |\n   | a |\n   | b |"
    )


async def test_of_several_statements_all_or_none_have_an_effect(bench: Bench) -> None:
    result = await ask(bench, f"{INSERT}; INSERT INTO nowhere VALUES (1)")
    assert result.kind == "failure"
    assert "statement 2 (INSERT): no such table: nowhere" in result.text
    assert "None of them had an effect" in result.text
    assert await text(bench, "SELECT * FROM todos") == "0 row(s) returned."


async def test_a_status_that_does_not_exist_is_refused(bench: Bench) -> None:
    await ask(bench, INSERT)
    assert "CHECK constraint" in await text(bench, "UPDATE todos SET status = 'finished'")


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE '{other}' AS other",
        "VACUUM INTO '{other}'",
        "SELECT load_extension('{other}')",
        "PRAGMA temp_store_directory = '{other}'",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = OFF",
        "DETACH DATABASE main",
        "BEGIN; ATTACH '{other}' AS o; COMMIT",
    ],
)
async def test_nothing_but_the_database_itself_is_reached(
    bench: Bench, tmp_path: Path, query: str
) -> None:
    other = tmp_path / "other.db"
    result = await ask(bench, query.replace("{other}", str(other)))
    assert result.kind == "failure"
    assert not other.exists()


async def test_an_endless_query_ends_in_time(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    database = Database(str(tmp_path / "x.db"), seconds=0.1)
    with pytest.raises(Refusal, match=r"longer than 0\.1 s"):
        await database.run(split_statements(endless))


async def test_a_cancelled_query_ends_at_once(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    work = Database(str(tmp_path / "x.db"), seconds=60).run(split_statements(endless))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await work


async def test_many_rows_are_cut_and_it_says_so(bench: Bench) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)"
    bench.output_limit = 1_000_000
    shown = await text(bench, f"{many} SELECT i FROM n")
    assert "| 1000 |" in shown
    assert "| 1001 |" not in shown
    assert "only the first 1000 rows" in shown


async def test_values_cannot_break_the_table(bench: Bench) -> None:
    shown = await text(bench, "SELECT 'a|b' || char(10) || 'c' AS x, NULL AS y, x'00ff' AS z")
    assert shown.endswith("| a\\|b\\nc | NULL | <2 bytes> |")


async def test_a_damaged_database_is_said_to_be_one(bench: Bench) -> None:
    Path(bench.database).write_bytes(b"no database at all" * 100)
    result = await ask(bench, "SELECT 1")
    assert (result.kind, result.text) == ("failure", "SQL error: file is not a database")


async def test_another_database_is_not_taken_for_the_own_one(bench: Bench) -> None:
    result = await bench.call("sql", description="d", query="SELECT 1", database="session_store")
    assert result.kind == "failure"


async def test_it_needs_no_permission(bench: Bench) -> None:
    assert bench.access("sql", description="d", query="DROP TABLE todos").kind == "none"


def test_statements_end_where_sqlite_says() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; DELETE FROM c; END"
    found = split_statements(f"SELECT ';' ; /* x; */ {trigger}; ; -- end;\n")
    assert [(statement.verb, statement.text) for statement in found] == [
        ("SELECT", "SELECT ';'"),
        ("CREATE", trigger),
    ]


async def test_a_transaction_that_is_not_ended_is_no_success(bench: Bench) -> None:
    result = await ask(bench, "BEGIN; CREATE TABLE t (x)")
    assert result.kind == "failure"
    assert "end it with COMMIT" in result.text
    assert "no such table" in await text(bench, "SELECT * FROM t")
    assert (await ask(bench, "BEGIN; CREATE TABLE t (x); COMMIT")).kind == "success"
    assert await text(bench, "SELECT * FROM t") == "0 row(s) returned."
