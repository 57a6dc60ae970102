"""Opens the session that the flags ask for, and builds the output it is shown on."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli.parse import Values
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import Client, SessionOptions
from trimtab.runtime.live import LiveSession
from trimtab.runtime.runtime import Runtime
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.run import Face

if TYPE_CHECKING:
    from trimtab.transports.headless.text import TextOutput


async def open_session(
    runtime: Runtime, options: SessionOptions, values: Values, client: Client
) -> LiveSession:
    """The session the flags ask for: a new one, or one that exists."""
    wanted = find_session(runtime, options, values)
    if "worktree" in values or (wanted is not None and "cwd" not in values):
        options = isolate(options, values)
    if wanted is None:
        return await runtime.create(options, client)
    return await runtime.resume(wanted, options, client)


def isolate(options: SessionOptions, values: Values) -> SessionOptions:
    """A worktree, if one is asked for or the session to be resumed has one."""
    from trimtab.contracts.options import Isolation

    name = values.get("worktree")
    wanted = Isolation(
        new="worktree" in values,
        name=None if name is True else name,
        changes=values.get("worktree_changes", "leave"),
    )
    return msgspec.structs.replace(options, isolation=wanted)


def find_session(runtime: Runtime, options: SessionOptions, values: Values) -> str | None:
    """The id of the session to resume, or None for a new one."""
    store = runtime.store
    if "resume" in values and values["resume"] is not True:
        return store.find(values["resume"], cwd=options.cwd)
    if "resume" in values:
        sessions = store.list()
        if len(sessions) != 1:
            raise UsageError(
                f"--resume without an id needs exactly one session, and there are {len(sessions)}; "
                "name one (trimtab sessions list) or use --continue."
            )
        return sessions[0].id
    if values.get("continue"):
        latest = store.latest(options.cwd)
        if latest is None:
            raise UsageError("There is no session to continue; start one without --continue.")
        return latest
    if options.session_id and store.exists(options.session_id):
        return options.session_id
    return None


def build_face(values: Values, answer: Output, notes: Output) -> Face:
    """How the run is shown."""
    if values.get("output_format") == "json":
        from trimtab.transports.headless.jsonl import JsonLines

        return JsonLines(answer, notes)
    return build_text(values, answer, notes)


def build_text(values: Values, answer: Output, notes: Output) -> "TextOutput":
    """The face of a run for people."""
    from trimtab.transports.headless.text import Style, TextOutput

    terminal = os.isatty(2)
    colour = terminal and "no_color" not in values and not os.environ.get("NO_COLOR")
    style = Style(silent="silent" in values, colour=colour, progress=terminal)
    return TextOutput(answer, notes, style)
