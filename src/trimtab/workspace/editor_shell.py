"""A command in a terminal of the person's editor."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trimtab.contracts.workspace import Command, EditorTerminals
from trimtab.workspace.shell import Shell

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined

POLL_SECONDS = 0.1
NOT_STARTED = 126


class EditorShell(Shell):
    """A command that an editor runs; its output is polled, because the editor does not send it."""

    def __init__(
        self,
        shell_id: str,
        command: Command,
        saved: str,
        on_end: Callable[[Shell], None],
        terminals: EditorTerminals,
    ) -> None:
        super().__init__(shell_id, command, saved, on_end)
        self._terminals = terminals
        self._terminal_id: str | None = None
        self._received = 0
        self._widened = True  # there is no pipe of ours

    def start(
        self, cwd: str, env: Mapping[str, str], confinement: "Confined | None" = None
    ) -> None:
        self._begin(self._follow(cwd, env))

    async def kill(self) -> None:
        """Have the editor kill the command. The command counts as ended at once."""
        if self._terminal_id is not None and not self.finished.is_set():
            self._terminals.discard(self._terminal_id)
        self._finish(128 + signal.SIGKILL)

    async def _follow(self, cwd: str, env: Mapping[str, str]) -> None:
        own = {name: value for name, value in env.items() if os.environ.get(name) != value}
        try:
            terminal_id = await self._terminals.create(self.command, cwd, own)
        except OSError as error:
            self._say(f"The editor could not start the command: {error.strerror or error}.\n")
            self._finish(NOT_STARTED)
            return
        self._terminal_id = terminal_id
        if self.finished.is_set():  # it was killed meanwhile
            self._terminals.discard(terminal_id)
            return
        self._finish(await self._watch_terminal(terminal_id))
        self._terminals.discard(terminal_id)

    async def _watch_terminal(self, terminal_id: str) -> int:
        """Take output until the command ends; return its exit code."""
        ended = asyncio.ensure_future(self._terminals.wait(terminal_id))
        try:
            while not ended.done() and not self.finished.is_set():
                await asyncio.wait((ended,), timeout=POLL_SECONDS)
                self._add(await self._terminals.read(terminal_id))
            if not self.finished.is_set():
                self._add(await self._terminals.read(terminal_id))
            return await ended
        except OSError as error:
            self._say(f"The editor lost the command: {error.strerror or error}.\n")
            return NOT_STARTED
        finally:
            ended.cancel()

    def _add(self, text: str) -> None:
        new = text[self._received :]
        self._received = max(self._received, len(text))
        if new and not self.finished.is_set():
            self._take(new.encode("utf-8", "replace"))
