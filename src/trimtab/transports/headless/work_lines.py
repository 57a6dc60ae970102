"""Says what the agent does in a line every half minute, while nothing else is said."""

import asyncio
import time
from collections.abc import Callable

from trimtab.contracts.events.assistant import AssistantIdle, AssistantMessageDelta
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.events.model import ModelCallStart
from trimtab.contracts.events.permission import PermissionCompleted, PermissionRequested
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.text import neutralise

INTERVAL = 30.0
"""Seconds between two lines."""


class WorkLines:
    """Follows the events of the main agent; `say` receives the lines."""

    def __init__(self, say: Callable[[str], None], interval: float = INTERVAL) -> None:
        self._say = say
        self._interval = interval
        self._running: dict[str, tuple[str, float]] = {}
        """The name and the start of everything that runs. The key of a model call is empty."""
        self._asked = 0
        """The number of questions that the person has not answered."""
        self._timer: asyncio.TimerHandle | None = None

    def on_event(self, event: Event) -> None:
        if event.agent_id is not None:
            return
        match event.data:
            case ToolExecutionStart(tool_call_id=call, tool_name=name):
                self._running.pop("", None)
                self._running[call] = (neutralise(name), time.monotonic())
            case ModelCallStart():
                self._running[""] = ("the model", time.monotonic())
            case ToolExecutionComplete(tool_call_id=call):
                self._running.pop(call, None)
            case AssistantMessageDelta() if "" in self._running:
                del self._running[""]
            case PermissionRequested():
                self._asked += 1
            case PermissionCompleted():
                self._asked = max(0, self._asked - 1)
            case AssistantIdle():
                self._running.clear()
                self._asked = 0
            case _:
                return
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._running and not self._asked:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._tell)

    def _tell(self) -> None:
        now = time.monotonic()
        for name, since in self._running.values():
            self._say(f"  Working ({name}, {now - since:.0f} s)")
        self._schedule()
