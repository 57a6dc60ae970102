"""Starts a conversation in the terminal, as the flags ask for."""

import asyncio
import os

import msgspec

from trimtab.cli.inputs import attach_all
from trimtab.cli.opening import build_text, open_session
from trimtab.cli.parse import Values
from trimtab.contracts.events.envelope import Event
from trimtab.contracts.options import Client, SessionOptions
from trimtab.runtime.live import LiveSession
from trimtab.runtime.runtime import Runtime
from trimtab.transports.headless.dialog import Dialog, Opening
from trimtab.transports.headless.logfile import LogFile
from trimtab.transports.headless.output import open_outputs

_EXISTING = ("resume", "continue", "session_id")
"""Flags that name an existing session."""


async def talk(runtime: Runtime, options: SessionOptions, values: Values, log: LogFile) -> int:
    """Run a conversation; return the exit code."""
    answer, notes, keyboard = open_outputs(1, 2, 0)
    # Typed text is shown even if answers and notes are redirected.
    screen = next((output for output in (notes, answer) if os.isatty(output.fd)), keyboard)
    face = build_text(values, answer, notes, append_only=True)
    dialog = Dialog(face, screen, attach_all(values, options.cwd), run_program)

    def on_event(event: Event, line: bytes) -> None:
        dialog.on_event(event)
        face.on_event(event, line)
        log.on_event(event, line)

    client = Client(on_event=on_event, attended=True)
    if "no_ask_user" not in values:
        client = Client(
            on_event=on_event,
            attended=True,
            ask=dialog.ask,
            ask_trust=dialog.ask_trust,
            ask_person=dialog.ask_person,
            ask_approval=dialog.ask_approval,
        )

    async def open_first() -> LiveSession:
        return add_dialog_tools(await open_session(runtime, options, values, client), client)

    async def open_new() -> LiveSession:
        fresh = msgspec.structs.replace(options, session_id=None, name=None)
        others = {name: value for name, value in values.items() if name not in _EXISTING}
        return add_dialog_tools(await open_session(runtime, fresh, others, client), client)

    async def resume(session_id: str) -> LiveSession:
        fresh = msgspec.structs.replace(options, session_id=None, name=None)
        return add_dialog_tools(await runtime.resume(session_id, fresh, client), client)

    opening = Opening(open_first, open_new, resume, runtime.home)
    return await dialog.run(opening, values.get("interactive"))


def add_dialog_tools(live: LiveSession, client: Client) -> LiveSession:
    """Add the tools that ask a person, if there is a person to ask."""
    if client.ask_person is not None:
        live.controls.set_tools((), ("ask_user", "exit_plan_mode"))
    return live


async def run_program(command: str, live: LiveSession) -> int:
    """Give the terminal to a program of the person until it ends. The model does not see it."""
    process = await asyncio.create_subprocess_exec(
        os.environ.get("SHELL") or "/bin/sh", "-c", command, cwd=live.controls.options.cwd
    )
    return await process.wait()
