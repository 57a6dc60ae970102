"""Commands of the interface: those it answers itself, and those it passes to the session."""

import base64
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.errors import UsageError
from trimtab.contracts.text import neutralise
from trimtab.runtime.commands import ALIASES, COMMANDS, find_command
from trimtab.transports.tui.completion import CommandRow

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

_NAME = re.compile(r"/([\w?:.-]+)(?:\s+(.*))?", re.DOTALL)
_THROUGH_THE_QUEUE = {"compact"}
"""Commands that take long: they go through the session's queue, so that Esc stops them."""

LocalCommand = Callable[["Tui", str], Awaitable[None]]


def list_commands(tui: "Tui") -> Sequence[CommandRow]:
    """Return everything that can be typed as `/name`."""
    rows = [
        CommandRow(
            name=command.name,
            arguments=command.arguments,
            help=command.help,
            while_busy=command.while_busy,
            values=command.values,
        )
        for command in COMMANDS.values()
    ]
    live = tui.live
    custom = live.controls.setup.customizations if live is not None else None
    if custom is not None:
        rows += [
            CommandRow(name=skill.name, help=skill.description, source="skill")
            for skill in custom.skills.active
            if skill.user_invocable and skill.name not in COMMANDS
        ]
    return rows


def handles(tui: "Tui", text: str) -> bool:
    """Return True if the interface runs this text itself, False if it is a prompt."""
    match = _NAME.fullmatch(text.strip())
    if match is None or tui.live is None:
        return False
    name = ALIASES.get(match[1].lower(), match[1].lower())
    command = COMMANDS.get(name)
    if command is None or name in _THROUGH_THE_QUEUE:
        return False
    return name in LOCAL or command.while_busy or not tui.busy


async def run(tui: "Tui", text: str) -> None:
    """Run a command and show its answer."""
    assert tui.live is not None
    found = find_command(tui.live, text)
    if found is None:
        raise UsageError(f"Unknown command {text.split(maxsplit=1)[0]}; see /help.")
    command, arguments = found
    tui.transcript.blank()
    tui.transcript.say(f"> {text.strip()}", "person")
    if (local := LOCAL.get(command.name)) is not None:
        await local(tui, arguments)
    else:
        answer = await tui.live.run_command(text)
        if answer:
            tui.transcript.say(answer)
    tui.transcript.blank()
    tui.status.refresh()


async def clear(tui: "Tui", _: str) -> None:
    """Begin a new session."""
    old = tui.live
    assert old is not None
    if await tui.open(tui.opening.new):
        tui.transcript.say(f"The old session is kept: trimtab --resume={old.id}", "dim")


async def leave(tui: "Tui", _: str) -> None:
    tui.leave()


async def copy(tui: "Tui", _: str) -> None:
    """Copy the last answer to the clipboard through the terminal."""
    assert tui.live is not None
    answer = tui.live.answer
    if not answer:
        tui.transcript.say("There is no answer to copy yet.", "dim")
        return
    data = base64.b64encode(answer.encode("utf-8", "replace")).decode()
    tui.screen.write(f"\x1b]52;c;{data}\x07")
    tui.transcript.say(f"Copied the last answer ({len(answer):,} characters).", "dim")


async def rewind(tui: "Tui", _: str) -> None:
    tui.actions.rewind()


LOCAL: dict[str, LocalCommand] = {
    "clear": clear,
    "copy": copy,
    "exit": leave,
    "rewind": rewind,
}


def readable(text: str) -> str:
    """Return the output of a command without terminal commands."""
    return neutralise(text)
