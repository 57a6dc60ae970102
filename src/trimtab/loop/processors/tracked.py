"""Tells what tools did to the session itself: its plan, its list of things to do, its intent."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from trimtab.contracts.events.assistant import AssistantIntent
from trimtab.contracts.events.session import SessionPlanChanged, SessionTodosChanged
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult

INTENT = "report_intent"
Mark = tuple[int, int, int] | None
"""Identity of a file's content: inode, size, modification time. None: there is no file."""


class Tracked(Processor):
    """Any tool may change them, a shell command too, so the files are looked at, not the calls."""

    def __init__(self, plan: str, database: str, read_todos: Callable[[], object]) -> None:
        self._plan = plan
        self._database = database
        self._read_todos = read_todos
        self._plan_mark: Mark = None
        self._database_mark: Mark = None
        self._todos: object = None

    async def before_request(self, run: Run) -> Stop | None:
        # What a client changed since the last turn was told by whoever changed it.
        self._plan_mark = mark(self._plan)
        return None

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if pending.tool.spec.name == INTENT and result.kind == "success":
            run.session.emit(AssistantIntent(intent=pending.args["intent"]))
        before, self._plan_mark = self._plan_mark, mark(self._plan)
        if before != self._plan_mark:
            run.session.emit(SessionPlanChanged(operation=operation(before, self._plan_mark)))
        seen, self._database_mark = self._database_mark, mark(self._database)
        if seen != self._database_mark:
            todos = await asyncio.to_thread(self._read_todos)
            if todos != self._todos:
                self._todos = todos
                run.session.emit(SessionTodosChanged())
        return result


def operation(before: Mark, after: Mark) -> str:
    if before is None:
        return "create"
    return "update" if after else "delete"


def mark(path: str) -> Mark:
    with suppress(OSError):
        info = os.stat(path)
        return info.st_ino, info.st_size, info.st_mtime_ns
    return None
