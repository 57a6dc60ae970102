"""The inline interface in tmux: a real terminal that wraps lines again when it is resized."""

import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clikit import TRIMTAB, Cli, bash, serving

LOOKS = 600
pytestmark = pytest.mark.needs("tmux")


class Tmux:
    """A tmux server of its own with one window."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)

    async def call(self, *args: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "tmux",
            "-S",
            self._socket,
            "-f",
            "/dev/null",
            *args,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LANG": "C.UTF-8"},
        )
        out, _ = await process.communicate()
        return out.decode()

    async def text(self) -> str:
        """The scrollback and the screen; rows that tmux wrapped itself are joined."""
        text = await self.call("capture-pane", "-p", "-J", "-S", "-", "-t", "main")
        return "".join(f"{line.rstrip()}\n" for line in text.split("\n"))

    async def shows(self, pattern: str) -> str:
        """Wait until a pattern is there; tmux reports no changes, so it is asked again."""
        text = ""
        for _ in range(LOOKS):
            if re.search(pattern, text := await self.text()):
                return text
            await asyncio.sleep(0.05)
        raise AssertionError(f"{pattern!r} is not shown; there is:\n{text}")

    async def type(self, *keys: str) -> None:
        await self.call("send-keys", "-t", "main", *keys)

    async def resize(self, columns: int, rows: int) -> None:
        await self.call("resize-window", "-t", "main", "-x", str(columns), "-y", str(rows))


@asynccontextmanager
async def in_tmux(
    cli: Cli, *args: str, size: tuple[int, int] = (80, 24), shell: bool = False
) -> AsyncIterator[Tmux]:
    """Run the program in tmux, after a line that was there before it."""
    tmux = Tmux(cli.home.parent / "tmux.socket")
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in cli.env.items())
    program = f"env {variables} {shlex.join([TRIMTAB, *args])}"
    folder = shlex.quote(str(cli.cwd))
    command = f"cd {folder}; echo before us; {program}; exec cat"
    if shell:
        (cli.cwd / "start").write_text(program)
        command = f"cd {folder}; PS1='$ ' exec sh -i"
    await tmux.call(
        "new-session",
        "-d",
        "-s",
        "main",
        "-x",
        str(size[0]),
        "-y",
        str(size[1]),
        "sh",
        "-c",
        command,
    )
    try:
        yield tmux
    finally:
        await tmux.call("kill-server")


async def test_a_resize_while_streaming_never_loses_or_doubles_a_finished_line(cli: Cli) -> None:
    lines = "\n".join(f"line {number}" for number in range(150))
    async with (
        serving([{"text": lines, "chunk": 8, "chunk_delay": 0.02}]) as server,
        in_tmux(cli.use(server), "-i", "go") as tmux,
    ):
        for columns, rows, seen in (
            (60, 24, 10),
            (100, 30, 25),
            (40, 12, 40),
            (80, 24, 60),
            (25, 8, 80),
            (80, 24, 100),
        ):
            await tmux.shows(f"line {seen}\n")
            await tmux.resize(columns, rows)
        text = await tmux.shows("line 149\n")
    shown = text.split("\n")
    assert "before us" in shown
    for number in range(150):
        assert shown.count(f"line {number}") == 1, number


async def test_code_can_be_copied_as_it_was_written(cli: Cli) -> None:
    code = [f"value_{number} = {'x' * (number * 9)!r}" for number in range(12)]
    answer = "```python\n" + "\n".join(code) + "\n```\nDone."
    async with (
        serving([{"text": answer, "chunk": 9}]) as server,
        in_tmux(cli.use(server), "-i", "go", size=(50, 20)) as tmux,
    ):
        text = await tmux.shows(r"Done\.")
    shown = [line.rstrip() for line in text.split("\n")]
    for line in code:
        assert line in shown


async def test_a_question_is_answered_and_the_past_stays(cli: Cli) -> None:
    script = [{"tools": [bash("touch made")]}, {"text": "Made it."}]
    async with (
        serving(script) as server,
        in_tmux(cli.use(server), "-i", "make it", size=(40, 12)) as tmux,
    ):
        await tmux.shows(r"1/y +yes, once")
        for _ in range(LOOKS):
            await tmux.type("y")  # until the guard has passed it belongs to the draft
            await asyncio.sleep(0.6)
            if "Made it." in await tmux.text():
                break
        assert "before us" in await tmux.text()
    assert (cli.cwd / "made").exists()


async def test_control_z_gives_the_shell_its_terminal_and_fg_comes_back(cli: Cli) -> None:
    async with serving([{"text": "Back."}]) as server, in_tmux(cli.use(server), shell=True) as tmux:
        await tmux.type(". ./start", "Enter")
        await tmux.shows("Ask anything")
        await tmux.type("a draft")
        await tmux.shows("› a draft")
        await tmux.type("C-z")
        await tmux.shows(r"Stopped|suspended")
        await tmux.type("echo typed in the $((1 + 1))nd shell", "Enter")
        await tmux.shows(r"\ntyped in the 2nd shell")
        await tmux.type("fg", "Enter")
        await tmux.shows(r"2nd shell\n[\s\S]*› a draft")
        await tmux.type("Enter")
        await tmux.shows(r"Back\.")


async def test_keys_typed_together_with_control_z_are_never_sent(cli: Cli) -> None:
    async with serving([{"text": "Back."}]) as server, in_tmux(cli.use(server), shell=True) as tmux:
        await tmux.type(". ./start", "Enter")
        await tmux.shows("Ask anything")
        await tmux.type("a draft", "C-z", "for the shell", "Enter")
        await tmux.shows(r"Stopped|suspended")
        await tmux.type("fg", "Enter")
        await tmux.shows(r"› a draft")
        assert not server.requests  # the shell got the words, or the draft has them
        await tmux.type("Enter")
        await tmux.shows(r"Back\.")


async def test_the_draft_is_edited_in_an_editor_and_output_opened_in_a_pager(cli: Cli) -> None:
    editor = cli.cwd / "editor.sh"
    editor.write_text('#!/bin/sh\necho "edited: $(cat "$1")" > "$1"\n')
    pager = cli.cwd / "pager.sh"
    pager.write_text('#!/bin/sh\ncat "$1"; echo PAGED; read line\n')
    editor.chmod(0o755)
    pager.chmod(0o755)
    cli.env |= {"VISUAL": str(editor), "PAGER": str(pager)}
    script = [{"tools": [bash("seq 1 30")]}, {"text": "Counted."}]
    async with (
        serving(script) as server,
        in_tmux(cli.use(server), "-i", "count", "--allow-all") as tmux,
    ):
        await tmux.shows(r"Counted\.")
        await tmux.type("my words")
        await tmux.shows("› my words")
        await tmux.type("C-g")
        await tmux.shows("› edited: my words")
        await tmux.type("C-o")
        await tmux.shows(r"bash seq 1 30\n\n1\n2\n[\s\S]*PAGED")
        await tmux.type("Enter")
        await tmux.shows(r"PAGED[\s\S]*› edited: my words")
