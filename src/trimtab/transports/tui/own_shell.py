"""Shell commands of the person: `!command`, and a whole shell with `!` or `$` alone."""

import signal
from typing import TYPE_CHECKING

from trimtab.contracts.ids import new_id
from trimtab.host.recorded_commands import describe_for_model, read_command, run_recorded
from trimtab.transports.tui.other_programs import run_program

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui


def handles(text: str) -> bool:
    """Return True if a text is a command of the person, or asks for a shell."""
    return read_command(text) is not None


class OwnShell:
    """Runs the person's commands; the newest one is stopped first."""

    def __init__(self, tui: "Tui") -> None:
        self._tui = tui
        self._running: dict[str, bool] = {}
        """The ids of running commands; True for one that was asked to end."""

    async def run(self, text: str) -> None:
        """Run what a text asks for."""
        command, shared = read_command(text) or ("", False)
        if command:
            await self._run_command(command, shared=shared)
        else:
            await self._open_shell()

    def stop(self, number: signal.Signals) -> bool:
        """Send a signal to the newest command, and kill it the second time.

        Returns False if none runs.
        """
        hosted = self._tui.hosted
        if hosted is None or not self._running:
            return False
        request_id = list(self._running)[-1]
        asked, self._running[request_id] = self._running[request_id], True
        hosted.own_commands.kill(request_id, signal.SIGKILL if asked else number)
        if not asked:
            self._tui.say_briefly("The command is asked to end; once more kills it.")
        return True

    async def _open_shell(self) -> None:
        tui = self._tui
        assert tui.live is not None
        shell = tui.terminal.env.get("SHELL") or "/bin/sh"
        tui.transcript.say(f"A shell of your own ({shell}); exit comes back.", "dim")
        tui.paint_now()
        try:
            await run_program(tui, [shell], cwd=tui.live.controls.options.cwd)
        except OSError as error:
            tui.transcript.say(
                f"{shell} cannot be run: {error.strerror}; set SHELL to your shell.", "error"
            )

    async def _run_command(self, command: str, *, shared: bool) -> None:
        """Run a command; what it prints goes to the model with the next prompt if `shared`."""
        tui = self._tui
        assert tui.hosted is not None
        assert tui.live is not None
        request_id = new_id()
        self._running[request_id] = False
        try:
            recorded = await run_recorded(
                tui.live,
                tui.hosted.own_commands,
                command,
                request_id=request_id,
                shared=shared,
            )
        finally:
            del self._running[request_id]
        if shared and recorded.ended is not None:
            tui.own_output.append(describe_for_model(command, recorded.ended))
