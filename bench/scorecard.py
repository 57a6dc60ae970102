"""`make scorecard`: the promises measured at full size. Each line says what was tried and what failed."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

KILLS = 1000
EDITS = 50_000
UNDOS = 10_000
WRITERS = 16
COMMANDS = 100
"""All there are."""
STOPS = 500
OUTPUT = 1000
FILES = 500_000
ABORTS = 40
RUNS = 1000
RACES = 2000
FRAMES = 100_000
LINES = 50_000
REQUESTS = 50_000
CANCELS = 500


def say(promise: int, what: str, figure: str, *, ok: bool) -> bool:
    print(f"{promise:>2}  {what:<58} {figure:<34} {'ok' if ok else 'MISSED'}", flush=True)
    return ok


async def kills() -> bool:
    """Promise 1: SIGKILL at random moments, then resume."""
    from killkit import kill_and_resume, random_kills

    folder = Path(tempfile.mkdtemp(prefix="trimtab-kills-"))
    gate = asyncio.Semaphore(2)
    failures: list[str] = []

    async def one(number: int, kill: Any) -> None:
        async with gate:
            try:
                await kill_and_resume(folder / str(number), kill)
            except (AssertionError, Exception) as error:  # each failure is counted, whatever it is
                failures.append(f"{number}: {error}")

    moments = random_kills(KILLS, seed=20_000)
    await asyncio.gather(*(one(number, kill) for number, kill in enumerate(moments)))
    for failure in failures[:5]:
        print(f"    {failure}")
    return say(
        1,
        "random SIGKILLs, then reopened and resumed",
        f"{KILLS - len(failures)} of {KILLS}",
        ok=not failures,
    )


def tests(promise: int, what: str, *selection: str) -> bool:
    """A family of tests as a measure."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *selection]
    env = {**os.environ, "TRIMTAB_EXAMPLES": "random"}
    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    last = next(
        (
            line
            for line in reversed(result.stdout.split("\n"))
            if "passed" in line or "failed" in line
        ),
        "",
    )
    if result.returncode:
        print(result.stdout[-2000:])
    figure = last.strip("= ") or ("all passed" if not result.returncode else "failed")
    return say(promise, what, figure, ok=result.returncode == 0)


def cases(promise: int, program: str, count: int, what: str) -> bool:
    """A program of `tests/properties`, perhaps with a word, that says last what it found."""
    name, *words = program.split()
    path = ROOT / "tests" / "properties" / name
    result = subprocess.run(
        [sys.executable, path, *words, str(count)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )
    lines = result.stdout.strip().split("\n")
    if result.returncode:
        print(result.stdout[-1000:], result.stderr[-1000:])
    return say(promise, what, lines[-1][:34], ok=result.returncode == 0)


def namespace() -> bool:
    """Promise 8: the whole suite where other machines cannot be reached."""
    program = [sys.executable, str(ROOT / "bench" / "namespace.py")]
    result = subprocess.run(program, capture_output=True, text=True, check=False)
    if result.returncode:
        print(result.stdout[-2000:])
    last = result.stderr.strip().split("\n")[-1]
    return say(8, "the whole test suite on loopback alone", last, ok=result.returncode == 0)


async def aborts() -> bool:
    """Promise 10: from abort to idle, in every state."""
    from livekit import STATES, opened

    times: list[float] = []
    for name in STATES:
        replies, event, options = STATES[name]
        for _ in range(ABORTS):
            folder = Path(tempfile.mkdtemp(prefix="trimtab-abort-"))
            async with opened(folder, replies, **options) as (live, watch, _provider):
                live.send("go")
                await watch.saw(event)
                began = time.perf_counter()
                await live.abort()
                times.append((time.perf_counter() - began) * 1000)
    p99 = statistics.quantiles(times, n=100)[98]
    return say(
        10,
        f"cancel in {len(STATES)} states, {len(times)} times, p99",
        f"{p99:.0f} ms (target 200)",
        ok=p99 <= 200,
    )


async def main() -> int:
    results = []
    steps: list[Callable[[], bool | Awaitable[bool]]] = [
        kills,
        lambda: tests(
            1,
            "corruption corpus: every byte x every damage",
            "tests/unit/session/test_log_corruption.py",
        ),
        lambda: tests(
            1,
            "230 MB / 74,000 events listed, opened, shown",
            "tests/behaviour/test_sessions_big_log.py",
        ),
        lambda: cases(2, "edit_cases.py", EDITS, f"{EDITS:,} random edits, bytes outside the hunk"),
        lambda: cases(
            2, "undo_cases.py", UNDOS, f"{UNDOS:,} undo cases: agent, shell, person, others"
        ),
        lambda: cases(2, "worktree_writers.py", WRITERS, f"{WRITERS} writers in worktrees, kills"),
        lambda: cases(7, "process_cases.py commands", COMMANDS, "awkward commands, verdict in 5 s"),
        lambda: cases(7, "process_cases.py kills", STOPS, f"{STOPS} random kills of commands"),
        lambda: cases(
            7, "process_cases.py output", OUTPUT, f"{OUTPUT:,} MB of output of a command"
        ),
        lambda: cases(7, "search_cases.py", FILES, f"search in {FILES:,} files"),
        lambda: cases(3, "limit_cases.py", RUNS, f"{RUNS:,} misbehaving models against limits"),
        lambda: cases(4, "bypass_matrix.py", 0, "ways around rules x rules x surfaces"),
        lambda: cases(4, "over_asking.py", 0, "everyday commands that are asked about"),
        lambda: cases(4, "questions.py", 0, "questions in sessions after the first"),
        lambda: cases(4, "path_races.py", RACES, f"{RACES:,} reads and writes, links swapped"),
        lambda: tests(5, "injected failures x output x stdin", "tests/e2e/test_failures.py"),
        lambda: cases(5, "rpc_fuzz.py", FRAMES, f"{FRAMES:,} frames no client would send"),
        lambda: cases(5, "bridge_fuzz.py", REQUESTS, f"{REQUESTS:,} mangled requests to a bridge"),
        lambda: cases(5, "bridge_load.py", 100, "100 clients of a bridge, 1,000 that leave"),
        lambda: cases(7, "mcp_servers.py", 200, "20 mixed MCP servers; 200 kills of runs"),
        lambda: cases(10, "fleet_cases.py", 200, "200 random fleets with kills"),
        lambda: cases(2, "notebook_cases.py", 5_000, "5,000 changes of notebooks"),
        lambda: cases(5, "acp_fuzz.py", LINES, f"{LINES:,} lines no editor would send"),
        lambda: cases(10, "acp_cancels.py", CANCELS, f"{CANCELS} cancels of an editor at random"),
        lambda: cases(10, "crew_load.py", 50, "50 agents at work, written to and stopped"),
        lambda: cases(5, "rpc_load.py", 200, "200 sessions in one server, 20 tokens/s each"),
        aborts,
        namespace,
    ]
    for step in steps:
        outcome = step()
        results.append(outcome if isinstance(outcome, bool) else await outcome)
    return 0 if all(results) else 1


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    sys.exit(asyncio.run(main()))
