"""Awkward commands: each has a verdict within seconds, and none leaves a process behind."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

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


WAITING: list[tuple[str, dict[str, object]]] = [
    ("read answer", {"mode": "async"}),
    ("python3 -c 'input()'", {"mode": "async"}),
    ("printf 'Password: '; read -s x", {"pty": True}),
    ("cat", {"pty": True}),
    ("bash --norc -i", {"pty": True}),
    ("less /etc/passwd", {"pty": True}),
    ("vim -u NONE file", {"pty": True}),
    ("python3 -q", {"pty": True}),
    ("select x in one two; do break; done", {"pty": True}),
    ("python3 -c 'import getpass; getpass.getpass()'", {"pty": True}),
    ("vim -u NONE file", {}),
]

WORKING = [
    "printf 'Progress: '; sleep 2.5",
    "python3 -c 'import time; time.sleep(2.5)'",
    "python3 -c 'import threading; threading.Event().wait(2.5)'",
    "for i in 1 2 3 4 5; do sleep 0.5; done",
    "timeout 2.5 sh -c 'while :; do :; done'; true",
]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as bench:
        yield bench


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


async def test_a_verdict_within_five_seconds_and_nothing_left(tmp_path: Path) -> None:
    async def check(bench: Bench, command: str) -> None:
        start = time.monotonic()
        text = await bench.bash(command, initial_wait=2)
        assert time.monotonic() - start < 5, command
        last = text.rsplit("\n", 1)[-1]
        verdicts = ("<exited with exit code", "<command with shellId: 0 is ")
        assert last.startswith(verdicts), (command, text)

    await each(COMMANDS, tmp_path, check)


@pytest.mark.proves("AMTOOL-11")
async def test_waiting_for_input_is_recognised_and_choices_are_given(tmp_path: Path) -> None:
    async def check(bench: Bench, case: tuple[str, dict[str, object]]) -> None:
        command, options = case
        start = time.monotonic()
        text = await bench.bash(command, shellId="it", initial_wait=20, **options)
        if options.get("mode") == "async":
            text = await bench.text("read_bash", shellId="it", delay=20)
        assert time.monotonic() - start < 5, case
        assert "<command with shellId: it is waiting for input. Choose: " in text, (case, text)
        assert "write_bash" in text
        assert "stop_bash" in text
        assert await bench.text("stop_bash", shellId="it") == "<command with id: it stopped>"

    await each(WAITING, tmp_path, check)


async def test_a_suspended_command_is_recognised(bench: Bench) -> None:
    text = await bench.bash("kill -STOP $$")
    assert "<command with shellId: 0 is waiting for a signal to continue. Choose: " in text


async def test_work_is_not_taken_for_waiting(tmp_path: Path) -> None:
    async def check(bench: Bench, command: str) -> None:
        await bench.bash(command, mode="async", shellId="it")
        text = await bench.text("read_bash", shellId="it", delay=20)
        assert text.endswith("<command with id: it exited with exit code 0>"), (command, text)

    await each(WORKING, tmp_path, check)


async def test_200_megabytes_of_output_cost_little_time_and_memory(bench: Bench) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    text = await bench.bash("head -c 200000000 /dev/zero")
    assert time.monotonic() - start < 10
    assert text.startswith("Output too large to read at once (195312.5 KB). Saved to: ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
    assert take_saved(bench) == 200_000_000


def take_saved(bench: Bench) -> int:
    """The size of the one file of saved output, which is removed."""
    (saved,) = Path(bench.files).iterdir()
    size = saved.stat().st_size
    saved.unlink()
    return size


@pytest.mark.slow
async def test_endless_output_is_stopped(bench: Bench) -> None:
    text = await bench.bash("yes")
    assert "<stopped: the command printed without end>" in text
    assert text.rsplit("\n", 1)[-1].startswith("<exited with exit code 1")
    assert processes_with(bench.session_id) == []
    assert take_saved(bench) > 1 << 30


async def test_nothing_is_left_after_kills_at_random_moments(bench: Bench) -> None:
    rng = random.Random(7)
    forkers = [command for command in COMMANDS if "sleep" in command or "setsid" in command]
    for _ in range(30):
        calls = [asyncio.ensure_future(bench.bash(rng.choice(forkers))) for _ in range(2)]
        await asyncio.wait(calls, timeout=rng.random() * 0.05)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert processes_with(bench.session_id) == []
    assert bench.workspace.shells.list() == []
