"""Runs a model's SQL on one SQLite file, within limits and without access to other files."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from urllib.parse import quote

from trimtab.contracts.sql import Outcome, Refusal, Statement
from trimtab.tools.statements import TRANSACTIONS

TIMEOUT = 10.0
MAX_ROWS = 1000
MAX_LENGTH = 4 * 1024 * 1024
"""Bytes of a string, a row or a statement."""
MAX_PAGES = 65536
"""Pages of 4 KB that a database may have, together 256 MB."""
STEPS = 2000
"""Instructions of SQLite's virtual machine between two checks of the time."""
READING_PRAGMAS = frozenset(
    (
        *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"),
        *("foreign_key_list", "database_list", "collation_list", "compile_options"),
        *("integrity_check", "quick_check", "foreign_key_check", "page_count", "encoding"),
        "data_version",  # full-text search uses it internally
    )
)
FORBIDDEN_FUNCTIONS = frozenset(("load_extension", "fts3_tokenizer", "writefile", "readfile"))
OPEN_TRANSACTION = (
    "the transaction was not ended, so nothing was saved: end it with COMMIT in the same query"
)
REFUSED = (
    "Other database files, extensions and connection settings cannot be used: use only tables of "
    "this database."
)


class Database:
    """An SQLite file. `prepare` is SQL that runs when the file is opened for writing."""

    def __init__(
        self, path: str, *, prepare: str = "", read_only: bool = False, seconds: float = TIMEOUT
    ) -> None:
        self._path = path
        self._prepare = prepare
        self._read_only = read_only
        self._seconds = seconds

    async def run(self, statements: Sequence[Statement]) -> list[Outcome]:
        """Run all statements or none, in a thread. Raises `Refusal`. Cancelling interrupts them."""
        stop = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(self._run, statements, stop))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([work])
            work.exception()
            raise

    def _run(self, statements: Sequence[Statement], stop: threading.Event) -> list[Outcome]:
        try:
            with closing(self._open()) as connection:
                _set_limits(connection, self._stopper(stop))
                return _run_all(connection, statements)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError) as error:
            raise Refusal(self._explain(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise Refusal(f"The database cannot be opened: {reason}.") from error

    def _open(self) -> sqlite3.Connection:
        if self._read_only:
            address = f"file:{quote(self._path)}?mode=ro"
            return sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        try:
            connection.execute(f"PRAGMA max_page_count={MAX_PAGES}")
            connection.executescript(self._prepare)
        except BaseException:
            connection.close()
            raise
        return connection

    def _stopper(self, stop: threading.Event) -> Callable[[], bool]:
        end = time.monotonic() + self._seconds
        return lambda: stop.is_set() or time.monotonic() > end

    def _explain(self, error: BaseException) -> str:
        text = str(error)
        if "interrupted" in text:
            return f"It took longer than {self._seconds:g} s: query less at once."
        if "not authorized" in text or "prohibited" in text:
            return f"{text.rstrip('.')}. {REFUSED}"
        if isinstance(error, MemoryError):
            return "It needs too much memory: query less at once."
        return text


def _set_limits(connection: sqlite3.Connection, stopped: Callable[[], bool]) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_LENGTH)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    # Invalid UTF-8 is shown instead of refused.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.set_progress_handler(stopped, STEPS)
    connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = True
    match action:
        case sqlite3.SQLITE_ATTACH | sqlite3.SQLITE_DETACH:
            allowed = False
        case sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() not in FORBIDDEN_FUNCTIONS
        case sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            allowed = name in READING_PRAGMAS or (second is None and name == "user_version")
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _run_all(connection: sqlite3.Connection, statements: Sequence[Statement]) -> list[Outcome]:
    together = len(statements) > 1 and not any(
        statement.verb in TRANSACTIONS for statement in statements
    )
    if together:
        connection.execute("BEGIN")
    outcomes: list[Outcome] = []
    for number, statement in enumerate(statements, 1):
        try:
            outcomes.append(_run_one(connection, statement))
        except sqlite3.Error as error:
            if len(statements) == 1:
                raise
            undone = " None of them had an effect." if connection.in_transaction else ""
            raise type(error)(f"statement {number} ({statement.verb}): {error}.{undone}") from error
    if together:
        connection.execute("COMMIT")
    if connection.in_transaction:
        raise sqlite3.OperationalError(OPEN_TRANSACTION)
    return outcomes


def _run_one(connection: sqlite3.Connection, statement: Statement) -> Outcome:
    with closing(connection.execute(statement.text)) as cursor:
        if cursor.description is None:
            return Outcome(
                verb=statement.verb, changed=max(0, cursor.rowcount), last_id=cursor.lastrowid
            )
        columns = tuple(column[0] for column in cursor.description)
        rows = cursor.fetchmany(MAX_ROWS)
        more = len(rows) == MAX_ROWS and cursor.fetchone() is not None
        if statement.verb in ("INSERT", "UPDATE", "DELETE", "REPLACE"):
            cursor.fetchall()  # RETURNING takes effect while rows are read
        return Outcome(verb=statement.verb, columns=columns, rows=rows, more=more)
