"""Starts, waits for, backgrounds and ends the shell commands of a workspace."""

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.contracts.ids import new_output_name
from trimtab.contracts.workspace import (
    Command,
    CommandState,
    EditorTerminals,
    ShellError,
    ShellInfo,
    UnknownShell,
)
from trimtab.workspace.process_tracking import guardian

if TYPE_CHECKING:
    from trimtab.workspace.programs import Confined
    from trimtab.workspace.sandbox.confinement import Confinement
    from trimtab.workspace.sandbox.fence import Fence
    from trimtab.workspace.sandbox.shield import Shield
    from trimtab.workspace.shell import Shell

FINISHED = 32
"""The number of finished commands whose output can still be read."""


class LocalShells:
    """Commands on this machine."""

    def __init__(
        self,
        root: str,
        files: str,
        env: Mapping[str, str],
    ) -> None:
        self._root = root
        self._files = files
        self._env = env
        self.on_change: Callable[[], None] = lambda: None
        """Called when a command begins or ends to run in the background."""
        self._shells: dict[str, Shell] = {}
        self._guarded = False
        self.confinement: Confinement | None = None
        self.fence: Fence | None = None
        self.shield: Shield | None = None
        self.terminals: EditorTerminals | None = None
        """The terminals of the person's editor, for commands that nothing confines."""

    def enter(self, root: str) -> None:
        """Start commands in another folder from now on."""
        self._root = root

    async def execute(
        self,
        command: Command,
        *,
        wait: float,
        limit: int,
        listener: Callable[[bytes], None] | None = None,
    ) -> CommandState:
        shell = self._start(command)
        if command.background:
            self.on_change()
            return shell.state(None)  # no output is shown now, so none may count as read
        shell.listener, shell.foreground = listener, True
        try:
            await shell.wait(wait)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._drop(shell)))
            raise
        finally:
            shell.listener, shell.foreground = None, False
        if shell.finished.is_set():
            self._shells.pop(shell.id, None)
        else:
            self.on_change()
        return shell.state(limit)

    async def read(self, shell_id: str, *, wait: float, limit: int) -> CommandState:
        shell = self._find(shell_id)
        await shell.wait(wait)
        return shell.state(limit)

    async def write(self, shell_id: str, keys: Sequence[str | bytes]) -> None:
        shell = self._find(shell_id)
        if shell.finished.is_set():
            raise ShellError(f"<command with id: {shell_id} has already exited>")
        try:
            await shell.write(keys)
        except ShellError as error:
            raise ShellError(f"<command with id: {shell_id} got no input: {error}>") from None

    async def stop(self, shell_id: str) -> None:
        shell = self._find(shell_id)
        running = not shell.finished.is_set()
        await self._drop(shell)
        if running:
            self.on_change()

    async def end(self, shell_id: str) -> None:
        """End a command; whoever waits for it receives its output so far."""
        await self._find(shell_id).kill()

    def peek(self, shell_id: str, start: int, size: int) -> tuple[bytes, int]:
        """Return a part of a command's output and the size of all of it.

        A negative `start` counts from the end. What is returned still counts as unread.
        """
        output = self._find(shell_id).output
        kept = output.kept
        start = max(0, kept + start) if start < 0 else start
        return output.piece(start, min(size, max(0, kept - start))), kept

    def send_to_background(self) -> Sequence[ShellInfo]:
        """Stop waiting for the commands that calls wait for; return them. They go on."""
        waited = [
            shell
            for shell in self._shells.values()
            if shell.foreground and not shell.finished.is_set()
        ]
        for shell in waited:
            shell.send_to_background()
        return [shell.info() for shell in waited]

    def list(self) -> Sequence[ShellInfo]:
        return [shell.info() for shell in self._shells.values()]

    async def aclose(self) -> None:
        """End every command that was not detached."""
        shells = list(self._shells.values())
        self._shells.clear()
        await asyncio.gather(*(shell.kill() for shell in shells if not shell.command.detached))
        for shell in shells:
            shell.abandon()
        if self.confinement is not None:
            self.confinement.close()
        if self.fence is not None:
            self.fence.close()
            self.fence.remove_temp()
        if self._guarded:
            self._guarded = False
            await guardian.release()

    def guard(self) -> None:
        """Make sure that commands are killed if this process dies. Raises `OSError`."""
        if not self._guarded:
            guardian.acquire()
            self._guarded = True

    def _start(self, command: Command) -> "Shell":
        from trimtab.workspace.shell import Shell

        shell_id = command.shell_id or self._next_id()
        known = self._shells.get(shell_id)
        if known is not None and not known.finished.is_set():
            raise ShellError(
                f"<command with id: {shell_id} is already running, wait for output with read_bash, "
                "stop it with stop_bash tool, or use a different shellId>"
            )
        saved = f"{self._files}/{new_output_name('shell', shell_id)}"
        confined = self._may_confine(command)
        if self.terminals is None or confined or command.background or command.terminal:
            shell = Shell(shell_id, command, saved, self._ended)
        else:
            from trimtab.workspace.editor_shell import EditorShell

            shell = EditorShell(shell_id, command, saved, self._ended, self.terminals)
        env = {**self._env, **command.env}
        if command.terminal:
            env["TERM"] = "xterm"
        try:
            self.guard()
            shell.start(self._root, env, self._confine(command))
        except ValueError:
            raise ShellError("The command contains a NUL character; remove it.") from None
        except OSError as error:
            reason = error.strerror or error
            raise ShellError(f"The command could not be started: {reason}.") from None
        self._shells[shell_id] = shell
        self._prune()
        return shell

    def _may_confine(self, command: Command) -> bool:
        confinement = self.confinement if command.confined else None
        return command.fenced or confinement is not None or self.shield is not None

    def _confine(self, command: Command) -> "Confined | None":
        if not command.fenced:
            return (self.confinement if command.confined else None) or self.shield
        if self.fence is None:
            raise OSError(errno.EPERM, "It must run behind the fence, and there is none")
        return self.fence

    def _next_id(self) -> str:
        number = len(self._shells)
        while str(number) in self._shells:
            number += 1
        return str(number)

    def _find(self, shell_id: str) -> "Shell":
        if shell_id not in self._shells:
            raise UnknownShell(f"Invalid shell ID: {shell_id}.")
        return self._shells[shell_id]

    async def _drop(self, shell: "Shell") -> None:
        self._shells.pop(shell.id, None)
        await shell.kill()
        shell.abandon()

    def _prune(self) -> None:
        finished = [shell.id for shell in self._shells.values() if shell.finished.is_set()]
        for shell_id in finished[:-FINISHED]:
            del self._shells[shell_id]

    def _ended(self, shell: "Shell") -> None:
        if not shell.foreground and shell.id in self._shells:
            self.on_change()
