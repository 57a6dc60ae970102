"""The running program of a runtime: its lines, whatever becomes of it."""

import asyncio
import sys

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.runtimes import program
from trimtab.runtimes.program import RuntimeProgram

ENV = {"PATH": "/usr/bin:/bin"}


def start(script: str) -> RuntimeProgram:
    return RuntimeProgram(["/bin/bash", "-c", script], cwd="/", env=ENV)


async def test_lines_that_arrive_while_others_are_read_are_not_lost() -> None:
    running = start("echo one; read -r go; for n in 1 2 3; do echo $n; done")
    lines = []
    async for line in running.lines():
        lines.append(line)
        if line == b"one":
            running.write(b"go\n")
            await asyncio.wait_for(closed(running), 50)
    await running.end()
    assert lines == [b"one", b"1", b"2", b"3"]


async def closed(running: RuntimeProgram) -> None:
    """Wait until the program has exited and its output was read to the end."""
    from toolkit import until

    await until(lambda: running._closed)


async def test_the_last_line_needs_no_newline_and_empty_ones_are_skipped() -> None:
    running = start("printf 'a\\n\\n  \\nb'")
    assert [line async for line in running.lines()] == [b"a", b"b"]
    await running.settle()
    assert running.exit_code == 0


async def test_a_program_is_over_although_its_child_keeps_the_output_open() -> None:
    running = start("echo a; sleep 300 & exit 3")
    async with asyncio.timeout(50):
        assert [line async for line in running.lines()] == [b"a"]
    await running.settle()
    assert running.exit_code == 3


async def test_its_last_words_and_its_exit_code_are_kept() -> None:
    running = start("echo oops >&2; exit 9")
    assert [line async for line in running.lines()] == []
    await running.settle()
    assert (running.exit_code, running.errors) == (9, b"oops\n")


async def test_a_long_line_is_one_line() -> None:
    code = "print('x' * 5_000_000); print('y')"
    running = RuntimeProgram([sys.executable, "-c", code], cwd="/", env=ENV)
    assert [len(line) async for line in running.lines()] == [5_000_000, 1]
    await running.settle()


def test_a_line_beyond_all_measure_is_dropped_and_counted() -> None:
    async def feed() -> RuntimeProgram:
        running = start("exit 0")
        for _ in range(program.MAX_LINE // 2**20 + 1):
            running._take(b"z" * 2**20)
        running._take(b"z\nshort\n")
        await running.end()
        return running

    running = asyncio.run(feed())
    assert running._take_lines() == [b"short"]
    assert running.dropped == 1


async def test_a_program_that_cannot_be_started_is_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="could not be started"):
        RuntimeProgram(["/no/such/program"], cwd="/", env=ENV)
