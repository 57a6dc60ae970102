"""The plan of a session and its to-do list."""

import os
from contextlib import suppress

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionPlanChanged
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Update(msgspec.Struct):
    content: str


@methods.on("session.plan.read")
async def read(call: Call, params: Nothing) -> JsonObject:
    path = call.session.live.folder.plan
    content = _content(path)
    return {"exists": content is not None, "content": content, "path": path}


@methods.on("session.plan.update", Update)
async def update(call: Call, params: Update) -> None:
    live = call.session.live
    known = _content(live.folder.plan) is not None
    replace_file(live.folder.plan, params.content.encode("utf-8", "replace"))
    live.emit(SessionPlanChanged(operation="update" if known else "create"))


@methods.on("session.plan.delete")
async def delete(call: Call, params: Nothing) -> None:
    live = call.session.live
    with suppress(FileNotFoundError):
        os.unlink(live.folder.plan)
        live.emit(SessionPlanChanged(operation="delete"))


@methods.on("session.plan.readSqlTodos")
async def read_todos(call: Call, params: Nothing) -> JsonObject:
    return {"rows": _rows(call.session.live.folder.database, "todos")}


@methods.on("session.plan.readSqlTodosWithDependencies")
async def read_todos_with_dependencies(call: Call, params: Nothing) -> JsonObject:
    database = call.session.live.folder.database
    return {"rows": _rows(database, "todos"), "dependencies": _rows(database, "todo_deps")}


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _rows(path: str, table: str) -> list[JsonObject]:
    """All rows of a table; none if there is no such database or table yet."""
    if not os.path.isfile(path):
        return []
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=1)) as database:
        database.row_factory = sqlite3.Row
        try:
            # The table's name is one of two constants of this module.
            found = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        except sqlite3.Error:
            return []
        return [dict(row) for row in found]
