"""The plan of a session and its to-do list."""

import os
from contextlib import suppress

import msgspec

from trimtab.config.files import replace_file
from trimtab.contracts.events.envelope import JsonObject
from trimtab.contracts.events.session import SessionPlanChanged
from trimtab.session.todos import Rows
from trimtab.transports.rpc.dispatch import Call, Methods, Nothing

methods = Methods()


class Update(msgspec.Struct):
    content: str


@methods.on("session.plan.read")
async def read(call: Call, params: Nothing) -> JsonObject:
    folder = call.session.live.folder
    content = folder.read_plan()
    return {"exists": content is not None, "content": content, "path": folder.plan}


@methods.on("session.plan.update", Update)
async def update(call: Call, params: Update) -> None:
    live = call.session.live
    known = live.folder.read_plan() is not None
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
    return {"rows": rename_columns(await call.session.live.controls.setup.todos.read("todos"))}


@methods.on("session.plan.readSqlTodosWithDependencies")
async def read_todos_with_dependencies(call: Call, params: Nothing) -> JsonObject:
    todos, dependencies = await call.session.live.controls.setup.todos.read_all()
    return {
        "rows": rename_columns(todos),
        "dependencies": [
            {"todoId": row.get("todo_id"), "dependsOn": row.get("depends_on")}
            for row in dependencies
        ],
    }


def rename_columns(todos: Rows) -> list[JsonObject]:
    """Return the todos, with the columns as clients name them."""
    return [{COLUMNS.get(name, name): value for name, value in row.items()} for row in todos]


COLUMNS = {"created_at": "createdAt", "updated_at": "updatedAt"}
