"""Runs SQL of a session in the database that its client keeps."""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.sql import Outcome, Refusal, Statement
from trimtab.host.ports import ClientGone
from trimtab.tools.database import MAX_ROWS
from trimtab.tools.sql.tool import read_schema
from trimtab.tools.statements import TRANSACTIONS
from trimtab.transports.rpc.peer import Peer
from trimtab.transports.rpc.protocol import UNKNOWN_METHOD, RpcError

TIMEOUT = 30.0
"""Seconds for one call to the client."""
ATTEMPTS = 3
DELAY = 0.2
"""Seconds between attempts when the client's database is locked."""
READING = frozenset(("SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA"))
CHANGING = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE"))
_CHANGE = re.compile(r"\b(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
_RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)
_UNSUPPORTED = "not supported"
T = TypeVar("T")


class _Result(msgspec.Struct, rename="camel"):
    columns: list[str] = []
    rows: list[dict[str, Any]] = []
    rows_affected: float = 0
    last_insert_rowid: float | None = None
    error: JsonObject | None = None


class _Failure(msgspec.Struct, rename="camel"):
    error_class: str = "fatal"
    message: str = ""


class _Results(msgspec.Struct, rename="camel"):
    results: list[_Result] = []
    error: _Failure | None = None


class ClientDatabase:
    """The tables of one session, in its client. The first query creates those of to-dos."""

    def __init__(self, peer: Peer, get_session_id: Callable[[], str]) -> None:
        self._peer = peer
        self._get_session_id = get_session_id
        self._prepared = False
        self.changes = 0

    async def run(self, statements: Sequence[Statement]) -> list[Outcome]:
        """Run the statements, all or none if the client has transactions. Raises `Refusal`."""
        if not self._prepared:
            await self._query("exec", read_schema())
            self._prepared = True
        if any(
            find_query_type(statement) != "query" or _returns(statement) for statement in statements
        ):
            self.changes += 1
        if len(statements) == 1 or any(statement.verb in TRANSACTIONS for statement in statements):
            return await self._run_in_turn(statements)
        outcomes = await self._run_together(statements)
        return await self._run_in_turn(statements) if outcomes is None else outcomes

    async def _run_in_turn(self, statements: Sequence[Statement]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for number, statement in enumerate(statements, 1):
            try:
                result = await self._query(find_query_type(statement), statement.text)
            except Refusal as refusal:
                if len(statements) == 1:
                    raise
                done = f" Those before it had an effect: {number - 1}." if outcomes else ""
                message = f"statement {number} ({statement.verb}): {refusal}.{done}"
                raise Refusal(message) from refusal
            outcomes.append(_read_outcome(statement, result))
        return outcomes

    async def _run_together(self, statements: Sequence[Statement]) -> list[Outcome] | None:
        """Run the statements in one transaction; return None if the client has none."""
        listed = [
            {"query": statement.text, "queryType": find_query_type(statement)}
            for statement in statements
        ]
        failure = _Failure()
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(DELAY)
            try:
                reply = await self._call("sqliteTransaction", _Results, statements=listed)
            except _UnknownMethod:
                return None
            if reply.error is None:
                pairs = zip(statements, reply.results, strict=False)
                return [_read_outcome(*pair) for pair in pairs]
            failure = reply.error
            if failure.error_class != "busyOrLocked":
                break
        if failure.error_class == "postCommitAmbiguous":
            raise Refusal(f"{failure.message}. The statements may have had an effect: look.")
        if _UNSUPPORTED in failure.message:
            return None
        raise Refusal(f"{failure.message}. None of the statements had an effect.")

    async def _query(self, query_type: str, query: str) -> _Result:
        result = await self._call("sqliteQuery", _Result, queryType=query_type, query=query)
        if result.error is not None:
            raise Refusal(str(result.error.get("message") or result.error.get("code")))
        return result

    async def _call(self, method: str, kind: type[T], **params: object) -> T:
        asked = {"sessionId": self._get_session_id(), **params}
        try:
            async with asyncio.timeout(TIMEOUT):
                reply = await self._peer.ask(f"sessionFs.{method}", asked)
            return msgspec.convert(reply, kind)
        except ClientGone:
            raise Refusal("The client that keeps the database is not connected.") from None
        except TimeoutError:
            raise Refusal(f"The client did not answer within {TIMEOUT:g} s.") from None
        except msgspec.ValidationError as error:
            raise Refusal(f"The client's answer cannot be read: {error}.") from None
        except RpcError as error:
            if error.code == UNKNOWN_METHOD:
                raise _UnknownMethod(error.message) from None
            raise Refusal(error.message) from None


class _UnknownMethod(Refusal):
    """Raised when the client does not know the method."""


def find_query_type(statement: Statement) -> str:
    """Return `query` for statements that return rows, `run` for changes, else `exec`."""
    if statement.verb in CHANGING:
        return "query" if _returns(statement) else "run"
    if statement.verb not in READING:
        return "exec"
    return "run" if statement.verb == "WITH" and _CHANGE.search(statement.text) else "query"


def _returns(statement: Statement) -> bool:
    """Return True for a change that returns rows."""
    return statement.verb in CHANGING and _RETURNING.search(statement.text) is not None


def _read_outcome(statement: Statement, result: _Result) -> Outcome:
    if find_query_type(statement) != "query":
        last_id = result.last_insert_rowid
        return Outcome(
            verb=statement.verb,
            changed=int(result.rows_affected),
            last_id=None if last_id is None else int(last_id),
        )
    rows = [tuple(row.get(name) for name in result.columns) for row in result.rows[:MAX_ROWS]]
    return Outcome(
        verb=statement.verb,
        columns=tuple(result.columns),
        rows=rows,
        more=len(result.rows) > MAX_ROWS,
    )
