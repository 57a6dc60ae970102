"""Texts of the shell tools about the state of a command, as models know them."""

import re
import time
from collections.abc import Sequence

from trimtab.contracts.tool import ShellEnd, ToolContext, ToolResult
from trimtab.contracts.workspace import CommandState, ShellError, ShellInfo, UnknownShell
from trimtab.tools.files import fail
from trimtab.tools.output import kilobytes, too_large

MAX_WAIT = 600.0
ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
RUNNING = (
    "The command is still running. Check the output above - if it looks like the command is "
    "waiting for input, use write_bash to provide it. Otherwise, use read_bash to continue waiting "
    "for output, or stop_bash to stop it."
)
SILENT = (
    "The command is still running but hasn't produced output yet. It may be waiting for input or "
    "still processing. Use read_bash to continue waiting, write_bash if you think it needs input, "
    "or stop_bash to stop it."
)
LET_GO = (
    "It is still running: go on with other work. read_bash shows its output and whether it has "
    "ended, stop_bash stops it."
)
CHOICES = (
    "Choose: answer it with write_bash, wait longer with read_bash, or stop it with stop_bash."
)


def render(state: CommandState, waited: float, ended: str) -> str:
    """Return the output and a last line with the state; that is `ended` after the end."""
    text = output_text(state)
    notes = list(remarks(state))
    if state.exit_code is not None:
        return "\n".join([text, *notes, ended])
    name = f"command with shellId: {state.shell_id}"
    if state.let_go:
        notes.append(f"<{name} was sent to the background by the user. {LET_GO}>")
    elif state.awaits:
        notes.append(f"<{name} is waiting for {state.awaits}. {CHOICES}>")
    else:
        more = RUNNING if text else SILENT
        notes.append(f"<{name} is still running after {waited:g} seconds. {more}>")
    return "\n".join([text, *notes] if text else notes)


def shell_end(state: CommandState, started: float) -> ShellEnd | None:
    """Return the end of a command that was started or read at a moment; None while it runs."""
    if state.exit_code is None:
        return None
    waited = int((time.monotonic() - started) * 1000)
    return ShellEnd(exit_code=state.exit_code, duration_ms=waited)


def output_text(state: CommandState) -> str:
    """Return the output of a command, or the path it was saved to."""
    text = state.output.decode("utf-8", "replace")
    if state.terminal:
        text = re.sub(ESCAPES, "", text).replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip("\n")
    if state.size <= len(state.output):
        return text
    return too_large(state.size, state.saved_to or "nowhere, because there is no room", text)


def remarks(state: CommandState) -> Sequence[str]:
    notes = []
    if state.no_terminal:
        notes.append(f"<no pseudo-terminal ({state.no_terminal}): the command runs on pipes>")
    if state.flooded:
        notes.append("<stopped: the command printed without end>")
    if state.lost:
        notes.append(f"<{kilobytes(state.lost)} of output were not kept>")
    if state.left_behind:
        names = ", ".join(sorted(set(state.left_behind)))
        notes.append(
            f"<stopped because the command left them running: {names}. "
            "To keep a process running, start it with mode async>"
        )
    return notes


def describe_shells(shells: Sequence[ShellInfo]) -> str:
    """Return the list of shells for the model."""
    if not shells:
        return "<no active shell sessions>"
    return "Active shell sessions:\n" + "\n".join(map(describe_shell, shells))


def describe_shell(shell: ShellInfo) -> str:
    status = "running" if shell.exit_code is None else f"completed (exit code: {shell.exit_code})"
    return (
        f"  shellId: {shell.shell_id}, pid: {shell.pid}, mode: {shell.mode}, status: {status}, "
        f"elapsed: {shell.elapsed:.0f}s, commands: 1, unread output: "
        f"{'yes' if shell.unread else 'no'}\n    current command: {shell.command[:200]}"
    )


def refuse_shell(error: ShellError, purpose: str, ctx: ToolContext) -> ToolResult:
    """Return a failure for a shell; for an unknown one, with a list of all shells."""
    if not isinstance(error, UnknownShell):
        return fail(str(error))
    listed = describe_shells(ctx.workspace.shells.list())
    return fail(f"{error} Please supply a valid shell ID to {purpose}.\n\n{listed}")


def seconds(value: float) -> float:
    """Return a waiting time within the limits."""
    return max(0.0, min(float(value), MAX_WAIT))
