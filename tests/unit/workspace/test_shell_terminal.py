"""Terminals for commands, and machines without terminals."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from toolkit import Bench
from trimtab.contracts.workspace import Command
from trimtab.workspace.shell import Shell

PROBE = """
import sys
from trimtab.workspace.shell import Shell
foreign = [name for name in sys.modules if name.split(".")[0] in ("ptyprocess", "pexpect", "winpty")]
print(foreign)
"""


@pytest.mark.proves("PKG-04", "PKG-06")
async def test_a_terminal_needs_nothing_but_python_and_opens_every_time(tmp_path: Path) -> None:
    probe = await asyncio.create_subprocess_exec(sys.executable, "-c", PROBE, stdout=PIPE)
    assert (await probe.communicate())[0] == b"[]\n"
    bench = Bench(tmp_path)
    try:
        for _ in range(2):
            assert (await bench.bash("test -t 0 && echo terminal", pty=True)).startswith("terminal")
    finally:
        await bench.workspace.aclose()


@pytest.mark.proves("PKG-07")
async def test_without_terminals_the_command_runs_on_pipes_and_that_is_said(
    tmp_path: Path,
) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(2, "No such file or directory")

    ended = asyncio.Event()
    command = Command(text="read x; echo got $x; test -t 0 || echo pipe", terminal=True)
    shell = Shell("1", command, str(tmp_path / "out"), lambda _: ended.set(), refuse)
    shell.start(str(tmp_path), {"PATH": os.environ["PATH"]})
    await shell.write([b"hello", "enter"])
    async with asyncio.timeout(60):
        await ended.wait()
    state = shell.state(10_000)
    assert state.output == b"got hello\npipe\n"
    assert not state.terminal
    assert state.no_terminal == "No such file or directory"
