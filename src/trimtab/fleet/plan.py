"""The plan of a fleet: todos and what each depends on, from a file or from a session's database."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.config.files import read_regular
from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise
from trimtab.session.todos import Rows

MAX_TODOS = 500
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DONE = "done"


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the goal that one worker does, after the todos in `depends_on` are merged."""

    id: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()


class _Row(msgspec.Struct, kw_only=True):
    id: str
    title: str = ""
    description: str | None = ""
    depends_on: list[str] = []


class _Plan(msgspec.Struct, kw_only=True):
    todos: list[_Row]


def read_plan(path: str) -> tuple[Todo, ...]:
    """Read a plan from a file of JSON. Raises `UsageError` with what is wrong and what to do."""
    try:
        data = read_regular(path)
    except OSError as error:
        raise UsageError(
            f"The plan {path} cannot be read ({error.strerror or error}); name a file with --plan."
        ) from None
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The plan {path} cannot be used ({error}); write "
            '{"todos": [{"id": "a", "title": "...", "description": "...", "depends_on": []}]}.'
        ) from None
    return check_plan(found.todos, f"The plan {path}")


def read_session_plan(rows: Rows, dependencies: Rows) -> tuple[Todo, ...]:
    """Return the open todos that a session wrote with `sql`. Raises `UsageError`."""
    done = {str(row.get("id")) for row in rows if row.get("status") == _DONE}
    needs: dict[str, list[str]] = {}
    for row in dependencies:
        if str(row.get("depends_on")) not in done:
            needs.setdefault(str(row.get("todo_id")), []).append(str(row.get("depends_on")))
    listed = [_read_row(row, needs) for row in rows if str(row.get("id")) not in done]
    return check_plan(listed, "The plan of the session")


def _read_row(row: dict[str, Any], needs: dict[str, list[str]]) -> _Row:
    name = str(row.get("id"))
    return _Row(
        id=name,
        title=str(row.get("title") or ""),
        description=str(row.get("description") or ""),
        depends_on=needs.get(name, []),
    )


def check_plan(rows: Iterable[_Row], origin: str) -> tuple[Todo, ...]:
    """Return the todos in an order in which each follows what it depends on. Raises `UsageError`.

    Among those that could come next, the plan's own order decides.
    """
    todos = [
        Todo(
            id=row.id,
            title=" ".join(row.title.split()) or row.id,
            description=row.description or "",
            depends_on=tuple(dict.fromkeys(row.depends_on)),
        )
        for row in rows
    ]
    if not todos:
        raise UsageError(f"{origin} has no todos; give it at least one.")
    if len(todos) > MAX_TODOS:
        raise UsageError(f"{origin} has {len(todos)} todos; give it at most {MAX_TODOS}.")
    _check_ids(todos, origin)
    _check_dependencies(todos, origin)
    return _sort(todos, origin)


def _check_ids(todos: Sequence[Todo], origin: str) -> None:
    seen: dict[str, str] = {}
    for todo in todos:
        odd = todo.id.endswith((".", ".lock")) or ".." in todo.id
        if not _ID.fullmatch(todo.id) or odd:
            raise UsageError(
                f"{origin} has the id {_show(todo.id)}, which cannot name a branch; use letters, "
                "digits, '-', '_' and '.', at most 64 of them, and begin with a letter or digit."
            )
        other = seen.setdefault(todo.id.lower(), todo.id)
        if other == todo.id and sum(each.id == todo.id for each in todos) > 1:
            raise UsageError(f"{origin} has the id {todo.id!r} twice; give each todo its own id.")
        if other != todo.id:
            raise UsageError(
                f"{origin} has the ids {other!r} and {todo.id!r}, which some disks cannot tell "
                "apart; rename one of them."
            )


def _check_dependencies(todos: Sequence[Todo], origin: str) -> None:
    known = {todo.id for todo in todos}
    for todo in todos:
        for name in todo.depends_on:
            if name not in known:
                raise UsageError(
                    f"{origin}: {todo.id!r} depends on {_show(name)}, which is not in it; add that "
                    "todo or remove the dependency."
                )


def _sort(todos: Sequence[Todo], origin: str) -> tuple[Todo, ...]:
    left, ordered = list(todos), list[Todo]()
    placed: set[str] = set()
    while left:
        free = next((todo for todo in left if placed.issuperset(todo.depends_on)), None)
        if free is None:
            cycle = " → ".join(_find_cycle(left))
            raise UsageError(f"{origin} has a cycle ({cycle}); remove one of these dependencies.")
        left.remove(free)
        ordered.append(free)
        placed.add(free.id)
    return tuple(ordered)


def _find_cycle(todos: Sequence[Todo]) -> list[str]:
    """Return the ids along a cycle, the first again at its end; every given todo is waiting."""
    waiting = {todo.id: todo for todo in todos}
    path = [todos[0].id]
    while True:
        following = next(name for name in waiting[path[-1]].depends_on if name in waiting)
        if following in path:
            return [*path[path.index(following) :], following]
        path.append(following)


def _show(name: str) -> str:
    return repr(neutralise(name, "approval")[:80])
