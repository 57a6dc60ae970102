"""`play`: runs the agent on prompts with a scripted model, and returns everything that happened."""

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.contracts.events.envelope import Event
from trimtab.contracts.options import Client, PermissionOptions, SessionOptions
from trimtab.contracts.permission import Ask
from trimtab.contracts.processor import Stop
from trimtab.contracts.provider import Request
from trimtab.contracts.run import Prompt
from trimtab.providers.script import Script
from trimtab.providers.scripted import ScriptedProvider
from trimtab.runtime.runtime import Runtime
from trimtab.session.session import Projections

ALLOW_ALL = PermissionOptions(allow_all_tools=True, allow_all_paths=True, allow_all_urls=True)


class Played(msgspec.Struct, kw_only=True):
    """The result of `play`: all events in order, the stop, and the requests to the model."""

    events: list[Event]
    lines: list[bytes]
    stop: Stop
    requests: list[Request]
    session_id: str
    log: str
    cwd: str
    projections: Projections

    def types(self, *, durable: bool = False) -> list[str]:
        """Return the event types in order."""
        return [event.type for event in self.events if not (durable and event.ephemeral)]

    def of(self, wire_name: str) -> list[Any]:
        """Return the data of all events of a type."""
        return [event.data for event in self.events if event.type == wire_name]


async def play(
    script: Any,
    *prompts: str | Prompt,
    cwd: str | None = None,
    home: str | None = None,
    resume: str | None = None,
    ask: Ask | None = None,
    **options: Any,
) -> Played:
    """Run the agent on `prompts`, one after another, with a model that answers from `script`.

    Working directory and home are fresh temporary folders unless given. Everything is allowed
    unless `permissions` says otherwise; further options are those of `SessionOptions`.
    """
    cwd = cwd or tempfile.mkdtemp(prefix="trimtab-play-")
    home = home or tempfile.mkdtemp(prefix="trimtab-home-")
    provider = ScriptedProvider(script if isinstance(script, Script) else Script.of(script))
    env = {"COPILOT_HOME": home, "PATH": os.environ.get("PATH", os.defpath), "HOME": home}
    runtime = Runtime(env=env, provider=provider)
    events: list[Event] = []
    lines: list[bytes] = []

    def on_event(event: Event, line: bytes) -> None:
        events.append(event)
        lines.append(line)

    client = Client(on_event=on_event, ask=ask)
    chosen = SessionOptions(**{"cwd": cwd, "permissions": ALLOW_ALL, **options})
    if resume is None:
        live = await runtime.create(chosen, client)
    else:
        live = await runtime.resume(resume, chosen, client)
    stop = Stop(reason="end_turn")
    try:
        for prompt in prompts:
            stop = await live.ask(prompt)
    finally:
        await live.close()
    return Played(
        events=events,
        lines=lines,
        stop=stop,
        requests=list(provider.requests),
        session_id=live.id,
        log=live.folder.events,
        cwd=cwd,
        projections=live.projections,
    )


def texts(requests: Sequence[Request], index: int = -1) -> list[str]:
    """Return the messages of a request as short texts, `role: text`, for assertions."""
    shown: list[str] = []
    for message in requests[index].messages:
        plain = msgspec.to_builtins(message)
        text = plain.get("text") or "".join(
            part.get("text", "[image]") for part in plain.get("parts", ())
        )
        calls = ",".join(call["name"] for call in plain.get("tool_calls") or ())
        shown.append(f"{plain['type']}: {text}{f' → {calls}' if calls else ''}")
    return shown
