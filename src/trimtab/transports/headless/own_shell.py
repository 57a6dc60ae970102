"""Shell commands of the person in plain lines: `!command`, and a whole shell with `!` alone."""

import os
import signal
from collections.abc import Awaitable, Callable

from trimtab.contracts.ids import new_id
from trimtab.contracts.run import Prompt
from trimtab.contracts.text import neutralise
from trimtab.host.calls import describe_end
from trimtab.host.own_commands import OwnCommands
from trimtab.host.recorded_commands import describe_for_model, run_recorded, tell_model
from trimtab.runtime.live import LiveSession

RunProgram = Callable[[str, LiveSession], Awaitable[int]]
"""Gives the terminal to a program until it ends; returns its exit code."""


class OwnShell:
    """Runs one command at a time; what it prints goes to the model with the next prompt.

    `write` receives the output, `say` whole lines.
    """

    def __init__(self, write: Callable[[str], None], say: Callable[[str], None]) -> None:
        self._write = write
        self._say = say
        self._commands: OwnCommands | None = None
        self._request_id = ""
        self._asked_to_end = False
        self._told: list[str] = []

    @property
    def running(self) -> bool:
        return self._commands is not None

    async def run(self, live: LiveSession, command: str, *, shared: bool) -> None:
        """Run a command to its end."""
        self._commands, self._request_id = OwnCommands(live.controls.setup.env), new_id()
        self._asked_to_end = False
        at_line_start = True

        def show(_stream: str, text: str) -> None:
            nonlocal at_line_start
            shown = neutralise(text)
            self._write(shown)
            at_line_start = shown.endswith("\n")

        try:
            recorded = await run_recorded(
                live,
                self._commands,
                command,
                request_id=self._request_id,
                shared=shared,
                on_output=show,
            )
        finally:
            self._commands = None
        if not at_line_start:
            self._write("\n")
        ended = recorded.ended
        if ended is None:
            self._say(f"The command cannot be run: {recorded.error}.")
            return
        if ended.exit_code:
            self._say(describe_end(ended.exit_code))
        if shared:
            self._told.append(describe_for_model(command, ended))

    def interrupt(self) -> None:
        """Ask the command to end, and kill it the second time."""
        if self._commands is not None:
            number = signal.SIGKILL if self._asked_to_end else signal.SIGINT
            self._asked_to_end = True
            self._commands.kill(self._request_id, number)

    def attach(self, prompt: Prompt | str) -> Prompt:
        """Return a prompt with the output of commands that the model has not read yet."""
        prompt = Prompt(text=prompt) if isinstance(prompt, str) else prompt
        if not self._told or prompt.text.startswith("/"):
            return prompt
        told, self._told = self._told, []
        return tell_model(prompt, told)

    def resume(self, told: list[str]) -> None:
        """Take up the output that the model of a resumed session has not read yet."""
        self._told = told


def find_shell() -> str:
    """Return the command of a whole shell."""
    return f"exec {os.environ.get('SHELL') or '/bin/sh'}"
