"""A live session in process, and a watch on its events: for tests of transports and runtime."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clikit import bash
from conformance import check_lines
from killkit import well_formed
from trimtab import LiveSession, Runtime, SessionOptions
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.options import Client, LimitOptions, PermissionOptions
from trimtab.contracts.permission import Answer, Ask
from trimtab.session.session import replay
from trimtab.testing import Script, ScriptedProvider
from trimtab.testing.playing import ALLOW_ALL


class Watch:
    """Collects events and lets a test wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.lines: list[bytes] = []
        self._changed = asyncio.Event()

    def on_event(self, event: Event, line: bytes) -> None:
        self.events.append(event)
        self.lines.append(line)
        self._changed.set()

    async def saw(self, wire_name: str, count: int = 1) -> Event:
        async with asyncio.timeout(60):
            while len(found := [e for e in self.events if e.type == wire_name]) < count:
                self._changed.clear()
                await self._changed.wait()
        return found[-1]

    def of(self, wire_name: str) -> list[Any]:
        return [event.data for event in self.events if event.type == wire_name]


@asynccontextmanager
async def opened(
    folder: Path, replies: Any, ask: Ask | None = None, **options: Any
) -> AsyncIterator[tuple[LiveSession, Watch, ScriptedProvider]]:
    provider = ScriptedProvider(Script.of(replies))
    env = {"COPILOT_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    runtime = Runtime(env=env, provider=provider)
    watch = Watch()
    chosen = SessionOptions(**{"cwd": str(folder), "permissions": ALLOW_ALL, **options})
    live = await runtime.create(chosen, Client(on_event=watch.on_event, ask=ask))
    try:
        yield live, watch, provider
    finally:
        await live.close()
        check_lines(watch.lines)
        assert well_formed(list(replay(live.folder.events).conversation.messages))


async def hanging(request_id: str, request: Any) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


STATES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "waiting for the model": ([{"text": "x", "delay": 60}], "model.call_start", {}),
    "receiving an answer": ([{"text": "x" * 400, "chunk": 4, "chunk_delay": 1}], "assistant.message_delta", {}),
    "running a command": ([{"tools": [bash("sleep 60"), bash("sleep 60")]}], "tool.execution_start", {}),
    "waiting to retry": ([{"error": {"status": 503}, "repeat": "forever"}], "assistant.turn_retry", {"limits": LimitOptions(retry_delay=60)}),
    "asking for permission": ([{"tools": [bash("touch x")]}], "permission.requested", {"permissions": PermissionOptions(), "ask": hanging}),
}  # fmt: skip
