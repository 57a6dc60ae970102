"""Search and helper programs: bounded, and honest about what is missing."""

import asyncio
import sys
from pathlib import Path

import pytest

from properties.search_cases import check
from toolkit import Bench
from trimtab.workspace.programs import Program
from trimtab.workspace.search import LineFilter, find_ripgrep


def test_ripgrep_is_found_beside_python_first() -> None:
    assert find_ripgrep({"PATH": "/nowhere"}).endswith("/rg")


async def test_too_many_lines_stop_the_search_and_say_so(bench: Bench) -> None:
    bench.write("many", "match\n" * 100_000)
    found = await bench.workspace.search(["--regexp=match", "./"], seconds=10, limit=1000)
    assert found.stopped == "there were too many results"
    assert 0 < sum(map(len, found.lines)) <= 1000


async def test_a_search_without_time_gives_what_it_has(bench: Bench) -> None:
    bench.write("many", "match\n")
    found = await bench.workspace.search(["--regexp=match", "./"], seconds=0, limit=1000)
    assert "stopped after 0 s" in found.stopped


async def test_a_program_gets_no_input_and_its_errors_are_kept_apart(bench: Bench) -> None:
    code, output = await bench.workspace.run(["sh", "-c", "cat; echo out; echo err >&2"], seconds=5)
    assert (code, output) == (0, b"out\n")
    assert await bench.workspace.run(["false"], seconds=5) == (1, b"")


async def test_output_of_a_program_is_bounded(bench: Bench) -> None:
    code, output = await bench.workspace.run(["yes"], seconds=5, limit=1000)
    assert (code, len(output)) == (-1, 1000)


async def test_a_program_that_takes_too_long_is_killed(bench: Bench) -> None:
    async with asyncio.timeout(20):
        code, _ = await bench.workspace.run(["sleep", "50"], seconds=0.05)
    assert code == -1


async def test_a_program_is_killed_when_its_caller_is_cancelled(bench: Bench) -> None:
    task = asyncio.ensure_future(bench.workspace.run(["sleep", "50"], seconds=50))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await task


async def test_a_missing_program_raises(bench: Bench) -> None:
    with pytest.raises(FileNotFoundError):
        await bench.workspace.run(["/no/such/program"], seconds=1)


async def test_a_program_that_closes_its_streams_early_is_waited_for() -> None:
    seen: list[bytes] = []

    def sink(chunk: bytes) -> bool:
        seen.append(chunk)
        return True

    program = "import os, time; os.close(1); os.close(2); time.sleep(0.1); os._exit(7)"
    ended = await Program(sink).run([sys.executable, "-c", program], cwd="/", env={}, seconds=5)
    assert ended.exit_code == 7


def test_a_line_split_over_chunks_is_one_line() -> None:
    lines = LineFilter(100, None)
    assert lines(b"on")
    assert lines(b"e\ntwo\nthr")
    lines.finish()
    assert lines.lines == [b"one", b"two", b"thr"]


async def test_many_files_are_searched_within_the_budget(tmp_path: Path) -> None:
    assert await check(5000, tmp_path) < 10
