"""Reports changes that tools make to the session's plan, todos and intent."""

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
Fingerprint = tuple[int, int, int] | None
"""The inode, size and modification time of a file; None if it does not exist."""


class PlanWatcher(Processor):
    """Compares the files after each call, since any tool may change them, even a command."""

    def __init__(self, plan: str, database: str, read_todos: Callable[[], object]) -> None:
        self._plan = plan
        self._database = database
        self._read_todos = read_todos
        self._plan_seen: Fingerprint = None
        self._database_seen: Fingerprint = None
        self._todos: object = None

    async def before_request(self, run: Run) -> Stop | None:
        # Changes by a client since the last turn have been reported when they were made.
        self._plan_seen = fingerprint(self._plan)
        return None

    async def after_tool(self, run: Run, pending: PendingCall, result: ToolResult) -> ToolResult:
        if pending.tool.spec.name == INTENT and result.kind == "success":
            run.session.emit(AssistantIntent(intent=pending.args["intent"]))
        before, self._plan_seen = self._plan_seen, fingerprint(self._plan)
        if before != self._plan_seen:
            run.session.emit(SessionPlanChanged(operation=operation(before, self._plan_seen)))
        before, self._database_seen = self._database_seen, fingerprint(self._database)
        if before != self._database_seen:
            todos = await asyncio.to_thread(self._read_todos)
            if todos != self._todos:
                self._todos = todos
                run.session.emit(SessionTodosChanged())
        return result


def operation(before: Fingerprint, after: Fingerprint) -> str:
    if before is None:
        return "create"
    return "update" if after else "delete"


def fingerprint(path: str) -> Fingerprint:
    with suppress(OSError):
        info = os.stat(path)
        return info.st_ino, info.st_size, info.st_mtime_ns
    return None
