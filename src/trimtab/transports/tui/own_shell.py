"""Shell commands of the person: `!command`, and a whole shell with `!` or `$` alone."""

import re
import signal
import time
from typing import TYPE_CHECKING

import msgspec

from trimtab.contracts.ids import new_id
from trimtab.contracts.text import neutralise
from trimtab.host.own_commands import Ended
from trimtab.host.parts import ToolInvocation
from trimtab.transports.tui.other_programs import run_program

if TYPE_CHECKING:
    from trimtab.transports.tui.app import Tui

_COMMAND = re.compile(r"(!!?)\s*(\S.*)?", re.DOTALL)
_TAIL = 4096
"""Characters of the output of a running command that are kept for its live rows."""


def handles(text: str) -> bool:
    """Return True if a text is a command of the person, or asks for a shell."""
    return text.strip() == "$" or _COMMAND.fullmatch(text) is not None


class OwnShell:
    """Runs the person's commands; the newest one is stopped first."""

    def __init__(self, tui: "Tui") -> None:
        self._tui = tui
        self._running: dict[str, bool] = {}
        """The ids of running commands; True for one that was asked to end."""

    async def run(self, text: str) -> None:
        """Run what a text asks for."""
        match = _COMMAND.fullmatch(text)
        if match is None or not match[2]:
            await self._open_shell()
        else:
            await self._run_command(match[2].strip(), shared=match[1] == "!")

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
        request_id = new_id()
        self._running[request_id] = False
        try:
            ended = await self._follow(request_id, command)
        except OSError as error:
            tui.transcript.say(f"The command cannot be run: {error.strerror or error}.", "error")
            return
        finally:
            del self._running[request_id]
        output = neutralise(ended.output).rstrip("\n")
        tui.transcript.say(f"! {command}", "bold")
        if output:
            tui.transcript.add_lines([(("", line),) for line in output.split("\n")])
        if ended.exit_code:
            tui.transcript.say(describe_end(ended.exit_code), "dim")
        if shared:
            tui.own_output.append(
                f"<user_command exit_code={ended.exit_code}>\n"
                f"$ {command}\n{ended.output.rstrip()}\n</user_command>"
            )

    async def _follow(self, request_id: str, command: str) -> Ended:
        """Run a command to its end; its last lines are live rows meanwhile."""
        tui = self._tui
        assert tui.hosted is not None
        assert tui.live is not None
        began = time.monotonic()
        call = ToolInvocation(
            key=f"own {request_id}",
            call_id=request_id,
            name="!",
            title=f"! {command}",
            state="running",
            done=False,
        )
        tail = ""

        def on_output(_: str, text: str) -> None:
            nonlocal tail
            tail = (tail + text)[-_TAIL:]
            tui.transcript.apply(msgspec.structs.replace(call, output=tail), began)
            tui.request_frame()

        tui.transcript.apply(call, began)
        try:
            return await tui.hosted.own_commands.run(
                request_id, command, tui.live.controls.options.cwd, on_output
            )
        finally:
            tui.transcript.calls.pop(call.key, None)


def describe_end(code: int) -> str:
    """Return how a command ended that did not succeed."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
