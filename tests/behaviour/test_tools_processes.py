"""Awkward commands: each has a verdict within seconds, and none leaves a process behind."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from measurekit import measure
from properties import process_cases
from properties.process_cases import COMMANDS, check_commands, check_kills, each
from toolkit import Bench, open_bench, processes_with

WAITING: list[tuple[str, dict[str, object]]] = [
    ("read answer", {"mode": "async"}),
    ("python3 -c 'input()'", {"mode": "async"}),
    ("printf 'Password: '; read -s x", {"pty": True}),
    ("cat", {"pty": True}),
    ("bash --norc -i", {"pty": True}),
    ("python3 -q", {"pty": True}),
    ("select x in one two; do break; done", {"pty": True}),
    ("python3 -c 'import getpass; getpass.getpass()'", {"pty": True}),
]
SCREENS: list[tuple[str, dict[str, object]]] = [
    ("less /etc/passwd", {"pty": True}),
    ("vim -u NONE file", {"pty": True}),
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


async def test_every_command_has_a_verdict_and_leaves_nothing(tmp_path: Path) -> None:
    """`make scorecard` measures the time it takes: 5 seconds."""
    assert len(COMMANDS) >= 60
    await check_commands(COMMANDS, tmp_path, longest=60)


WAIT = 30
"""Seconds that a command is waited for; one that waits for input is recognised before they end."""


async def check_waiting(bench: Bench, case: tuple[str, dict[str, object]]) -> None:
    command, options = case
    start = time.monotonic()
    text = await bench.bash(command, shellId="it", initial_wait=WAIT, **options)
    if options.get("mode") == "async":
        text = await bench.text("read_bash", shellId="it", delay=WAIT)
    assert time.monotonic() - start < WAIT - 2, case
    assert "<command with shellId: it is waiting for input. Choose: " in text, (case, text)
    assert "write_bash" in text
    assert "stop_bash" in text
    assert await bench.text("stop_bash", shellId="it") == "<command with id: it stopped>"


@pytest.mark.proves("AMTOOL-11")
async def test_waiting_for_input_is_recognised_and_choices_are_given(tmp_path: Path) -> None:
    await each(WAITING, tmp_path, check_waiting)


@pytest.mark.needs("less", "vim")
async def test_a_program_that_fills_the_screen_is_recognised_as_waiting(tmp_path: Path) -> None:
    await each(SCREENS, tmp_path, check_waiting)


async def test_a_suspended_command_is_recognised(bench: Bench) -> None:
    text = await bench.bash("kill -STOP $$")
    assert "<command with shellId: 0 is waiting for a signal to continue. Choose: " in text


async def test_work_is_not_taken_for_waiting(tmp_path: Path) -> None:
    async def check(bench: Bench, command: str) -> None:
        await bench.bash(command, mode="async", shellId="it")
        text = await bench.text("read_bash", shellId="it", delay=20)
        assert text.endswith("<command with id: it exited with exit code 0>"), (command, text)

    await each(WORKING, tmp_path, check)


async def test_200_megabytes_of_output_cost_little_time_and_memory() -> None:
    """In a process of its own, whose memory nothing else uses."""
    command = (sys.executable, process_cases.__file__, "output", "200")
    kits = str(Path(process_cases.__file__).parents[1])
    spent = await asyncio.to_thread(measure, *command, PYTHONPATH=kits)
    assert spent.out.startswith("200 MB: ")
    assert spent.seconds < 10


def take_saved(bench: Bench) -> int:
    """The size of the one file of saved output, which is removed."""
    (saved,) = Path(bench.files).iterdir()
    size = saved.stat().st_size
    saved.unlink()
    return size


@pytest.mark.slow
async def test_endless_output_is_stopped(bench: Bench) -> None:
    text = await bench.bash("yes", initial_wait=250)
    assert "<stopped: the command printed without end>" in text
    assert text.rsplit("\n", 1)[-1].startswith("<exited with exit code 1")
    assert processes_with(bench.session_id) == []
    assert take_saved(bench) > 1 << 30


async def test_nothing_is_left_after_kills_at_random_moments(tmp_path: Path) -> None:
    await check_kills(60, tmp_path)
