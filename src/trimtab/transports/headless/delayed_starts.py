"""Delays the line about a tool call until the call is permitted."""

import asyncio
from collections.abc import Callable

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.hook import HookEnd, HookStart
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import (
    ToolExecutionComplete,
    ToolExecutionPartialResult,
    ToolExecutionStart,
)

OnEvent = Callable[[Event, bytes], None]
QUESTIONS = ("ask_user", "exit_plan_mode")
"""Tools whose question is shown instead of a line for the call."""
DELAY = 0.1
"""Seconds after which a call that nobody was asked about counts as running."""


class DelayedStarts:
    """Forwards events; the start of a call is forwarded after the question about it, if any."""

    def __init__(self, forward: OnEvent) -> None:
        self._forward = forward
        self._delayed: dict[tuple[str | None, str], tuple[Event, bytes]] = {}
        self._asked: set[tuple[str | None, str]] = set()
        self._hooks: set[str] = set()

    def on_event(self, event: Event, line: bytes) -> None:
        agent = event.agent_id
        match event.data:
            case ToolExecutionStart(tool_name=name) if name in QUESTIONS:
                return
            case ToolExecutionStart(tool_call_id=call):
                self._delayed[agent, call] = event, line
                self._wait((agent, call))
                return
            case PermissionRequested(permission_request=request):
                self._asked.add((agent, str(request.get("toolCallId"))))
            case (
                PermissionCompleted(tool_call_id=str(call))
                | ToolExecutionPartialResult(tool_call_id=call)
                | ToolExecutionComplete(tool_call_id=call)
            ):
                self._release((agent, call))
            case HookStart(hook_invocation_id=hook):
                self._hooks.add(hook)
            case HookEnd(hook_invocation_id=hook):
                self._hooks.discard(hook)
        self._forward(event, line)

    def _wait(self, key: tuple[str | None, str]) -> None:
        asyncio.get_running_loop().call_later(DELAY, self._check, key)

    def _check(self, key: tuple[str | None, str]) -> None:
        if key not in self._delayed or key in self._asked:
            return
        if self._hooks:  # a hook may still cause a question
            self._wait(key)
        else:
            self._release(key)

    def _release(self, key: tuple[str | None, str]) -> None:
        self._asked.discard(key)
        if delayed := self._delayed.pop(key, None):
            self._forward(*delayed)
