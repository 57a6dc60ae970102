"""Awkward commands, kills at random moments, endless output: a verdict in time, nothing left behind.

Run as a program with what to try and how much of it: `python tests/properties/process_cases.py
commands 60`, `kills 500`, `output 1000` (megabytes).
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from measurekit import peak_memory
from toolkit import Bench, open_bench, processes_with

T = TypeVar("T")

COMMANDS = [
    "git init -q . && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x && git log",
    "git init -q . && git commit --allow-empty",
    "git init -q . && git rebase -i HEAD",
    "git clone -q http://127.0.0.1:9/none",
    "git ls-remote ssh://nobody@127.0.0.1:9/none",
    "read answer; echo got $answer",
    "read answer < /dev/tty; echo got $answer",
    "select x in a b; do echo $x; done",
    "python3",
    "python3 -c 'input()'",
    "python3 -c 'import getpass; getpass.getpass()'",
    "cat",
    "cat -",
    "cat < /dev/null",
    "bash",
    "bash -i",
    "sh",
    "vi file",
    "vim file",
    "nano file",
    "emacs -nw file",
    "less /etc/passwd",
    "more /etc/passwd",
    "man bash",
    "top",
    "watch date",
    "sudo -k true",
    "su nobody",
    "passwd",
    "ssh localhost",
    "ftp",
    "telnet",
    "bc",
    "sqlite3",
    "psql",
    "node",
    "irb",
    "gdb",
    "dialog --yesno x 5 20",
    "script -c true /dev/null",
    "tmux new -d 'sleep 100'",
    "screen",
    "yes | head -5",
    "yes | head -c 5000000 | wc -c",
    "head -c 100000 /dev/urandom",
    "printf '\\033[2J\\007\\000x'",
    "sleep 100 &",
    "nohup sleep 100 &",
    "nohup sleep 100 > /dev/null 2>&1 & disown",
    "setsid sleep 100 &",
    "setsid -f sleep 100",
    "env -i setsid -f sleep 100",
    "(sleep 100 &) ; true",
    "(setsid sh -c '(sleep 100 &)' &)",
    "trap '' TERM INT HUP; sleep 100 & true",
    "for i in $(seq 30); do sleep 100 & done; true",
    "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep 100; }; f 4 & true",
    "exec 1>&- 2>&-; sleep 0.05",
    "kill -STOP $$",
    "kill -9 $$",
    "exit 255",
    "exec nonexistent-program",
    "ulimit -c 0; kill -SEGV $$",
    "echo 'unclosed",
    "tail -f /dev/null & sleep 0.1; kill %1; wait",
    "coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y",
    "mkfifo p; cat p & echo x > p; wait",
    "exec 3<>/dev/tcp/127.0.0.1/9",
    "python3 -c 'import os, time; os.setsid() if os.fork() == 0 else os._exit(0); time.sleep(100)'",
]

VERDICTS = ("<exited with exit code", "<command with shellId: 0 is ")
LONGEST = 5.0
"""Seconds to a verdict."""
MEMORY = 16 << 20
"""Bytes that output of any size may cost."""


async def each(
    commands: Sequence[T], tmp_path: Path, work: Callable[[Bench, T], Awaitable[None]]
) -> None:
    """Do it for every command, a few at a time, each in a place of its own."""
    places = asyncio.Semaphore(6)

    async def one(number: int, command: T) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        async with places, open_bench(folder) as bench:
            await work(bench, command)
        assert processes_with(bench.session_id) == [], command

    async with asyncio.TaskGroup() as group:
        for number, command in enumerate(commands):
            group.create_task(one(number, command))


async def check_commands(commands: Sequence[str], folder: Path, longest: float = LONGEST) -> None:
    """Each command has a verdict in time, and leaves no process."""

    async def check(bench: Bench, command: str) -> None:
        start = time.monotonic()
        text = await bench.bash(command, initial_wait=2)
        assert time.monotonic() - start < longest, command
        assert text.rsplit("\n", 1)[-1].startswith(VERDICTS), (command, text)

    await each(commands, folder, check)


async def check_kills(count: int, folder: Path) -> None:
    """Cancel commands that fork at random moments: no process is left."""
    rng = random.Random(7)
    forkers = [command for command in COMMANDS if "sleep" in command or "setsid" in command]
    async with open_bench(folder) as bench:
        for _ in range(count // 2):
            calls = [asyncio.ensure_future(bench.bash(rng.choice(forkers))) for _ in range(2)]
            await asyncio.wait(calls, timeout=rng.random() * 0.05)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert processes_with(bench.session_id) == []
        assert bench.workspace.shells.list() == []


async def check_output(megabytes: int, folder: Path) -> tuple[float, float]:
    """Output goes to a file, all of it; gives the seconds and the megabytes of memory it cost."""
    async with open_bench(folder) as bench:
        before = peak_memory()
        start = time.monotonic()
        text = await bench.bash(f"head -c {megabytes}000000 /dev/zero", initial_wait=60)
        seconds = time.monotonic() - start
        assert text.startswith("Output too large to read at once ("), text[:200]
        (saved,) = Path(bench.files).iterdir()
        assert saved.stat().st_size == megabytes * 1_000_000
        saved.unlink()
        grown = peak_memory() - before
    assert grown < MEMORY, f"{grown} bytes of memory"
    return seconds, grown / 1e6


async def main(what: str, count: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="trimtab-processes-"))
    start = time.monotonic()
    if what == "commands":
        await check_commands(COMMANDS[:count], folder)
        print(f"{min(count, len(COMMANDS))} verdicts, 0 processes left")
    elif what == "kills":
        await check_kills(count, folder)
        print(f"{count} kills, 0 processes left, {time.monotonic() - start:.0f} s")
    else:
        seconds, grown = await check_output(count, folder)
        assert seconds < 30, f"{seconds:.1f} s"
        print(f"{count} MB: {seconds:.1f} s, {grown:.0f} MB of memory")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
