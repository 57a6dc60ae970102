"""The files and tables of a session in the file system of its client."""

import json
import shutil
import sqlite3
from typing import Any

import pytest
from copilot import (
    SessionFsSqliteProvider,
    SessionFsSqliteQueryResult,
    SessionFsSqliteTransactionFailure,
)
from copilot.rpc import PlanUpdateRequest, SessionFSSqliteTransactionErrorClass
from copilot.session import PermissionHandler
from copilot.session_fs_provider import SessionFsProvider

from sdkkit import Heard, Sdk, serving, talking, use


class MemoryFiles(SessionFsProvider):
    """A file system in memory; `broken` makes every write fail."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.broken = False

    async def read_file(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file", path)
        return self.files[path]

    async def write_file(self, path: str, content: str, mode: int | None = None) -> None:
        if self.broken:
            raise OSError(28, "No space left on device")
        self.files[path] = content

    async def append_file(self, path: str, content: str, mode: int | None = None) -> None:
        await self.write_file(path, self.files.get(path, "") + content)

    async def exists(self, path: str) -> bool:
        return path in self.files

    async def stat(self, path: str) -> Any:
        raise FileNotFoundError(2, "No such file", path)

    async def mkdir(self, path: str, recursive: bool, mode: int | None = None) -> None: ...

    async def readdir(self, path: str) -> list[str]:
        return []

    async def readdir_with_types(self, path: str) -> Any:
        return []

    async def rm(self, path: str, recursive: bool, force: bool) -> None:
        self.files.pop(path, None)

    async def rename(self, src: str, dest: str) -> None:
        self.files[dest] = self.files.pop(src)


FILE_SYSTEM = {
    "initial_working_directory": "/",
    "session_state_path": "/state",
    "conventions": "posix",
}


async def test_a_session_is_kept_in_the_clients_file_system_and_read_from_it(sdk: Sdk) -> None:
    files = MemoryFiles()
    options: Any = {
        "on_permission_request": PermissionHandler.approve_all,
        "create_session_fs_handler": lambda _: files,
    }
    async with serving([{"text": "one"}, {"text": "two"}]) as server:
        sdk.use(server)
        async with sdk.client(session_fs=FILE_SYSTEM) as client:
            session = await client.create_session(**options)
            await session.send_and_wait("first")
            await session.rpc.plan.update(PlanUpdateRequest(content="# the plan"))
            await session.disconnect()
        log = files.files["/state/events.jsonl"].splitlines()
        kinds = [json.loads(line)["type"] for line in log]
        assert kinds[0] == "session.start"
        assert kinds[-1] == "session.shutdown"
        assert files.files["/state/plan.md"] == "# the plan"
        assert session.session_id in files.files["/state/workspace.yaml"]
        shutil.rmtree(sdk.home / "session-state")
        async with sdk.client(session_fs=FILE_SYSTEM) as client:
            again = await client.resume_session(session.session_id, **options)
            await again.send_and_wait("second")
            await again.disconnect()
        said = str(server.requests[-1].json["messages"])
    assert "first" in said
    after = files.files["/state/events.jsonl"].splitlines()
    assert after[: len(log)] == log
    assert len({json.loads(line)["id"] for line in after}) == len(after), "nothing came twice"


async def test_a_client_whose_file_system_fails_is_told_and_the_session_goes_on(sdk: Sdk) -> None:
    files = MemoryFiles()
    files.broken = True
    async with serving([{"text": "one"}, {"text": "two"}]) as server:
        sdk.use(server)
        heard = Heard()
        async with sdk.client(session_fs=FILE_SYSTEM) as client:
            session = await client.create_session(
                on_permission_request=PermissionHandler.approve_all,
                create_session_fs_handler=lambda _: files,
                on_event=heard,
            )
            await session.send_and_wait("first")
            await heard.until("session.warning")
            assert (await session.send_and_wait("second")).data.content == "two"
    (warning,) = heard.of("session.warning")
    assert warning.warning_type == "session_files"


class MemoryTables(MemoryFiles, SessionFsSqliteProvider):
    """Also keeps the tables of a session; `asked` is every query with its type."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.database: sqlite3.Connection | None = None

    async def sqlite_query(
        self, query_type: Any, query: str, params: Any = None
    ) -> SessionFsSqliteQueryResult | None:
        self.asked.append((query_type.value, query))
        if self.database is None:
            self.database = sqlite3.connect(":memory:", isolation_level=None)
        if query_type.value == "exec":
            self.database.executescript(query)
            return None
        cursor = self.database.execute(query)
        if query_type.value == "run":
            return SessionFsSqliteQueryResult([], [], cursor.rowcount, cursor.lastrowid)
        columns = [column[0] for column in cursor.description]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return SessionFsSqliteQueryResult(columns, rows, 0)

    async def sqlite_exists(self) -> bool:
        return self.database is not None


class MemoryTransactions(MemoryTables):
    """Also runs several statements at once; the first `busy` attempts find it locked."""

    def __init__(self, busy: int = 0, failure: str = "") -> None:
        super().__init__()
        self.busy = busy
        self.failure = failure
        self.attempts = 0

    async def sqlite_transaction(self, statements: Any) -> list[SessionFsSqliteQueryResult]:
        self.attempts += 1
        if self.attempts <= self.busy:
            kind = SessionFSSqliteTransactionErrorClass.BUSY_OR_LOCKED
            raise SessionFsSqliteTransactionFailure("database is locked", kind)
        if self.failure:
            kind = SessionFSSqliteTransactionErrorClass(self.failure)
            raise SessionFsSqliteTransactionFailure("the disk failed", kind)
        assert self.database is not None
        self.database.execute("BEGIN")
        try:
            found = [await self.sqlite_query(one.query_type, one.query) for one in statements]
        except sqlite3.Error:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")
        return [one or SessionFsSqliteQueryResult([], [], 0) for one in found]


TABLES = {"session_fs": {**FILE_SYSTEM, "capabilities": {"sqlite": True}}}
ADD = "INSERT INTO todos (id, title) VALUES ('a', 'First')"
DEPEND = "INSERT INTO todo_deps VALUES ('b', 'a')"


def sql(query: str) -> dict[str, Any]:
    return use("sql", description="test", query=query)


async def test_sql_runs_in_the_database_of_the_client(sdk: Sdk) -> None:
    tables = MemoryTables()
    replies = [
        sql("CREATE TABLE items (id TEXT PRIMARY KEY, name TEXT)"),
        sql("INSERT INTO items VALUES ('a1', 'Widget')"),
        sql("SELECT * FROM items"),
        {"text": "Found."},
    ]
    config: Any = {"client": TABLES, "create_session_fs_handler": lambda _: tables}
    async with talking(sdk, replies, **config) as talk:
        assert await talk.say("go") == "Found."
        results = talk.tool_results()
    assert results[0] == "Schema operation completed successfully."
    assert results[1] == "1 row(s) inserted. Last inserted row ID: 1."
    assert "| a1 | Widget |" in results[2]
    kinds = [kind for kind, query in tables.asked if "items" in query]
    assert kinds == ["exec", "run", "query"]
    assert not list(sdk.home.glob("session-state/*/session.db"))


async def test_a_sub_agent_uses_the_tables_of_the_client_and_todos_are_announced(sdk: Sdk) -> None:
    tables = MemoryTransactions()
    start = use("task", description="a part", prompt="Do it.", agent_type="task")
    replies = [start, sql(f"{ADD}; {DEPEND}"), {"text": "Added."}, {"text": "Done."}]
    config: Any = {"client": TABLES, "create_session_fs_handler": lambda _: tables}
    async with talking(sdk, replies, **config) as talk:
        assert await talk.say("go") == "Done."
        listed = await talk.session.rpc.plan.read_sql_todos_with_dependencies()
        assert [(row.id, row.title, row.status) for row in listed.rows] == [
            ("a", "First", "pending")
        ]
        assert [(one.todo_id, one.depends_on) for one in listed.dependencies] == [("b", "a")]
        assert [row.id for row in (await talk.session.rpc.plan.read_sql_todos()).rows] == ["a"]
        assert len(talk.heard.of("session.todos_changed")) == 1
    log = map(json.loads, tables.files["/state/events.jsonl"].splitlines())
    calls = [event for event in log if event["type"] == "tool.execution_start"]
    assert [bool(call.get("agentId")) for call in calls if call["data"]["toolName"] == "sql"] == [
        True
    ]


async def test_todos_of_a_file_are_announced_too(sdk: Sdk) -> None:
    replies = [sql(f"{ADD}; {DEPEND}"), sql("SELECT * FROM todos"), {"text": "Done."}]
    async with talking(sdk, replies) as talk:
        await talk.say("go")
        listed = await talk.session.rpc.plan.read_sql_todos_with_dependencies()
        assert [row.id for row in listed.rows] == ["a"]
        assert [(one.todo_id, one.depends_on) for one in listed.dependencies] == [("b", "a")]
        assert len(talk.heard.of("session.todos_changed")) == 1


@pytest.mark.parametrize(
    ("tables", "query", "told", "rows"),
    [
        (MemoryTransactions(busy=2), f"{ADD}; {DEPEND}", "Executed 2 statement(s):", 1),
        (MemoryTransactions(busy=9), f"{ADD}; {DEPEND}", "database is locked. None of", 0),
        (MemoryTransactions(), f"{ADD}; INSERT INTO none VALUES (1)", "None of the statements", 0),
        (MemoryTransactions(failure="postCommitAmbiguous"), f"{ADD}; {DEPEND}", "may have had", 0),
        (MemoryTables(), f"{ADD}; {DEPEND}", "Executed 2 statement(s):", 1),
        (MemoryTables(), f"{ADD}; INSERT INTO none VALUES (1)", "before it had an effect: 1.", 1),
        (MemoryTables(), "SELECT * FROM none", "no such table: none", 0),
        (MemoryTables(), "WITH n AS (SELECT 1) SELECT * FROM n", "1 row(s) returned:", 0),
        (MemoryTables(), f"{ADD} RETURNING id", "1 row(s) returned:", 1),
    ],
)
async def test_statements_have_the_effect_that_the_model_is_told(
    sdk: Sdk, tables: MemoryTables, query: str, told: str, rows: int
) -> None:
    config: Any = {"client": TABLES, "create_session_fs_handler": lambda _: tables}
    async with talking(sdk, [sql(query), {"text": "Done."}], **config) as talk:
        await talk.say("go")
        assert told in talk.tool_results()[0]
    assert tables.database is not None
    assert len(tables.database.execute("SELECT id FROM todos").fetchall()) == rows
