"""Opens the session that the flags ask for, and builds its output."""

import os
from typing import TYPE_CHECKING

import msgspec

from trimtab.cli.parse import Values
from trimtab.contracts.errors import UsageError
from trimtab.contracts.options import Client, Isolation, SessionOptions
from trimtab.runtime.live import LiveSession
from trimtab.runtime.runtime import Runtime
from trimtab.transports.headless.jsonl import JsonLines
from trimtab.transports.headless.output import Output
from trimtab.transports.headless.run import Face

if TYPE_CHECKING:
    from trimtab.transports.headless.text import TextOutput


async def open_session(
    runtime: Runtime, options: SessionOptions, values: Values, client: Client
) -> LiveSession:
    """Create or resume the session that the flags ask for."""
    session_id = find_session(runtime, options, values)
    if "worktree" in values or (session_id is not None and "cwd" not in values):
        options = request_worktree(options, values)
    if session_id is None:
        return await runtime.create(options, client)
    return await runtime.resume(session_id, options, client)


def request_worktree(options: SessionOptions, values: Values) -> SessionOptions:
    """Ask for a new worktree if `--worktree` is given, else for the one of the resumed session."""
    name = values.get("worktree")
    isolation = Isolation(
        new="worktree" in values,
        name=None if name is True else name,
        changes=values.get("worktree_changes", "leave"),
    )
    return msgspec.structs.replace(options, isolation=isolation)


def find_session(runtime: Runtime, options: SessionOptions, values: Values) -> str | None:
    """Return the id of the session to resume, or None for a new session."""
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
    """Return the output of a headless run: JSON lines or text."""
    if values.get("output_format") == "json":
        return JsonLines(answer, notes)
    return build_text(values, answer, notes)


def build_text(
    values: Values, answer: Output, notes: Output, *, append_only: bool = False
) -> "TextOutput":
    """Return the output for people; if `append_only`, no row is ever written over."""
    from trimtab.transports.headless.text import Style, TextOutput

    terminal = os.isatty(2)
    dumb = os.environ.get("TERM", "dumb") == "dumb"
    colourless = dumb or "no_color" in values or bool(os.environ.get("NO_COLOR"))
    style = Style(
        silent="silent" in values,
        colour=terminal and not colourless,
        progress=terminal,
        append_only=append_only or dumb,
    )
    return TextOutput(answer, notes, style)
