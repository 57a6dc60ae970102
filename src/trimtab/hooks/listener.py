"""Calls hooks in the background: on compactions, notifications and permission questions."""

import asyncio
from typing import Any

from trimtab.contracts.events.context import SessionCompactionStart
from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.contracts.events.permission import PermissionRequested
from trimtab.contracts.events.system import SystemNotification
from trimtab.contracts.run import Run
from trimtab.hooks.caller import HookCaller
from trimtab.hooks.processor import add_context, apply_message


class HookListener:
    """Subscribes to a session's events, and calls hooks without blocking the run."""

    def __init__(self, caller: HookCaller, run: Run) -> None:
        self._caller = caller
        self._run = run

    def on_event(self, event: Event, line: bytes) -> None:
        match event.data:
            case SessionCompactionStart(trigger=trigger):
                kind = "manual" if trigger == "manual" else "auto"
                self._start("preCompact", trigger=kind, customInstructions="")
            case SystemNotification(content=content, kind=kind):
                self._start("notification", notification_type=_name(kind), message=content)
            case PermissionRequested(permission_request=request):
                message = f"Permission is needed: {_target(request)}"
                self._start("notification", notification_type="permission_prompt", message=message)

    def _start(self, event: str, **given: Any) -> None:
        if not self._caller.listens(event):
            return
        task = asyncio.get_running_loop().create_task(self._call(event, given))
        for tasks in (self._run.tasks, self._caller.unawaited):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _call(self, event: str, given: JsonObject) -> None:
        output = await self._caller.call(event, **given)
        apply_message(self._run, output)
        if event == "notification":
            add_context(self._run, output)


def _name(kind: Any) -> str:
    return str(kind.get("type", "")) if isinstance(kind, dict) else str(kind)


def _target(request: Any) -> str:
    if not isinstance(request, dict):
        return ""
    names = ("fullCommandText", "fileName", "path", "url", "toolName")
    return next((str(request[name]) for name in names if request.get(name)), "")
