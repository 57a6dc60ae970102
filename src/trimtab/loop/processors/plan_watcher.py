"""Reports changes that tools make to the session's plan, todos and intent."""

import os
from contextlib import suppress
from typing import Protocol

from trimtab.contracts.events.assistant import AssistantIntent
from trimtab.contracts.events.session import SessionPlanChanged, SessionTodosChanged
from trimtab.contracts.processor import PendingCall, Processor, Stop
from trimtab.contracts.run import Run
from trimtab.contracts.tool import ToolResult

INTENT = "report_intent"
Fingerprint = tuple[int, int, int] | None
"""The inode, size and modification time of a file; None if it does not exist."""


class TodoList(Protocol):
    """The to-do list of a session."""

    def find_version(self) -> object:
        """Return something that differs whenever the list may have changed."""
        ...

    async def read_all(self) -> object:
        """Return everything in the list, in a form that can be compared."""
        ...


class PlanWatcher(Processor):
    """Compares them after each call, since any tool may change them, even a command."""

    def __init__(self, plan: str, todos: TodoList) -> None:
        self._plan = plan
        self._todos = todos
        self._plan_seen: Fingerprint = None
        self._todos_seen: object = None
        self._listed: object = ([], [])

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
        version = self._todos.find_version()
        if version != self._todos_seen:
            self._todos_seen = version
            listed, self._listed = self._listed, await self._todos.read_all()
            if listed != self._listed:
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
