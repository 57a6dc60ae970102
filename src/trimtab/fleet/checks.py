"""Runs the checks of a fleet: the person's commands, in the merge folder."""

import time
from collections.abc import Mapping, Sequence

from trimtab.contracts.hooks import Program
from trimtab.fleet.events import CheckRun
from trimtab.workspace.fed_program import FedProgram

CHECK_SECONDS = 3600.0
KEPT_OUTPUT = 16_000
"""The number of bytes kept of the end of a check's output."""


class _CheckProgram(FedProgram):
    """A command of which only the end of the output is kept, however much it prints."""

    def _take(self, chunk: bytes) -> bool:
        self._output += chunk
        del self._output[:-KEPT_OUTPUT]
        return True


async def run_checks(
    commands: Sequence[str], folder: str, env: Mapping[str, str]
) -> tuple[CheckRun, ...]:
    """Run commands one after another, all of them even if one fails."""
    return tuple([await run_check(command, folder, env) for command in commands])


async def run_check(command: str, folder: str, env: Mapping[str, str]) -> CheckRun:
    """Run a shell command to its end, then end the processes it left running."""
    started = time.monotonic()
    program = Program(
        argv=("/bin/sh", "-c", f"exec 2>&1\n{command}"),
        cwd=folder,
        env=dict(env),
        input=b"",
        seconds=CHECK_SECONDS,
        limit=KEPT_OUTPUT,
    )
    try:
        ended = await _CheckProgram(program).finish()
    except OSError as error:
        return CheckRun(command=command, passed=False, exit_code=None, output=str(error.strerror))
    output = ended.output.decode("utf-8", "replace")
    if ended.timed_out:
        output += f"\n[The check was ended after {CHECK_SECONDS:g} s.]"
    return CheckRun(
        command=command,
        passed=ended.exit_code == 0,
        exit_code=ended.exit_code,
        output=output,
        seconds=round(time.monotonic() - started, 3),
    )
