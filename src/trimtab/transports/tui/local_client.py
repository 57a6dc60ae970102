"""The terminal as a client of the session it hosts; questions are answered by their ids."""

import asyncio
from collections.abc import Callable
from typing import Any

from trimtab.contracts.events.envelope import Event, JsonObject
from trimtab.host.participants import Capabilities

CAPABILITIES = Capabilities(
    request_permission=True, request_user_input=True, request_exit_plan_mode=True
)
SILENT = Capabilities()
"""The capabilities of a terminal that must not ask anything."""
_ANSWERED_BY_ID = ("userInput.request", "exitPlanMode.request")


class LocalClient:
    """Passes events on, and leaves questions open until somebody answers them by their id."""

    def __init__(self, on_event: Callable[[Event, bytes], None]) -> None:
        self._on_event = on_event

    def send_event(self, session_id: str, event: Event, line: bytes) -> None:
        self._on_event(event, line)

    async def ask(self, method: str, params: JsonObject) -> Any:
        """Wait for ever for questions that are answered by id; know nothing else."""
        if method in _ANSWERED_BY_ID:
            await asyncio.get_running_loop().create_future()
        return None
