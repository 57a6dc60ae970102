"""`make bench`: speed and memory, as ratios to a bare-asyncio program measured in the same run."""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bridge import measure_bridge
from connect import bare_ms, connect_ms
from discovery import measure_discovery
from editor import measure_editor
from hands import measure_hands
from mcp_servers import measure_servers
from measure import Spent, TimedServer, install, installed_mb, peak_mb, spawn, turns
from peers import measure_codex
from sandbox import measure_sandbox
from snapshots import LIMIT, SIZES, snapshot_ms
from streaming import WIRES, measure_counting, measure_wire
from terminal import measure_terminal

FLOOR = Path(__file__).with_name("floor.py")
SHELL: dict[str, Any] = {"name": "bash", "arguments": {"command": "true", "description": "nothing"}}
READ: dict[str, Any] = {"name": "view", "arguments": {"path": "notes.txt"}}


class Report:
    """Rows of figure, floor, ratio, target."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        print(f"{'figure':<44} {'trimtab':>9} {'floor':>9} {'ratio':>7}  target")

    def row(
        self, what: str, value: float, floor: float | None = None, limit: float | None = None
    ) -> None:
        """One figure. It misses its target when it is over `limit`."""
        base = f"{floor:9.2f}" if floor else f"{'-':>9}"
        ratio = f"{value / floor:6.2f}x" if floor else f"{'-':>7}"
        target = f"<= {limit:g}" if limit else ""
        missed = limit is not None and value > limit
        if missed:
            self.missed.append(what)
        print(
            f"{what:<44} {value:9.2f} {base} {ratio}  {target:<8} {'MISSED' if missed else ''}",
            flush=True,
        )


class Bench:
    """The two programs side by side, against one server."""

    def __init__(self, venv: Path, server: TimedServer) -> None:
        self.python, self.trimtab = venv / "bin" / "python", venv / "bin" / "trimtab"
        self.server = server
        self.project = Path(tempfile.mkdtemp(prefix="trimtab-bench-project-"))
        self.notes = self.project / "notes.txt"
        self.notes.write_text("".join(f"line {n}\n" for n in range(40)))

    def commands(self, call: dict[str, Any]) -> tuple[list[str | Path], list[str | Path]]:
        """Ours and the floor's."""
        prompt = ["-p", "Work until you are done.", "--output-format", "json", "--allow-all"]
        prompt += ["--max-repeats", "0"]  # the scripted model asks for the same thing each turn
        ours: list[str | Path] = [self.trimtab, "-C", self.project, *prompt]
        kind = "shell" if call is SHELL else "read"
        floor: list[str | Path] = [
            self.python,
            "-I",
            FLOOR,
            self.server.host,
            str(self.server.port),
            kind,
            self.notes,
        ]
        return ours, floor

    async def memory(self, count: int, call: dict[str, Any]) -> tuple[float, float]:
        """The peak of both in runs of `count` turns, in MB."""
        peaks = []
        for argv in self.commands(call):
            self.server.load(turns(count, call))
            peaks.append(await peak_mb(argv, self.server))
        return peaks[0], peaks[1]

    async def pair(
        self, count: int, call: dict[str, Any], rounds: int
    ) -> tuple[list[Spent], list[Spent]]:
        """Runs of `count` turns: ours and the floor's, in turn."""
        runs: tuple[list[Spent], list[Spent]] = ([], [])
        for _ in range(rounds):
            for argv, spent in zip(self.commands(call), runs, strict=True):
                self.server.load(turns(count, call))
                spent.append(await spawn(argv, self.server))
        return runs


async def measure_start(bench: Bench, report: Report) -> None:
    ours = [await spawn([bench.trimtab, "--version"]) for _ in range(15)]
    floor = [await spawn([bench.python, "-I", FLOOR, "--version"]) for _ in range(15)]
    report.row("--version, ms", least(ours, "wall"), least(floor, "wall"), limit=25)
    ours, floor = await bench.pair(0, SHELL, 15)
    first, base = least(ours, "to_first"), least(floor, "to_first")
    report.row("exec to first request, ms", first, base, limit=120)
    report.row("  as a multiple of the floor", first / base, limit=2.1)
    report.row("  median, ms", median(ours, "to_first"), median(floor, "to_first"))
    report.row(
        "last request to exit, ms", least(ours, "exit_after_last"), least(floor, "exit_after_last")
    )


async def measure_turns(bench: Bench, report: Report, *, long: bool) -> None:
    for call, limit in ((SHELL, 6.0), (READ, 2.0)):
        kind = "shell" if call is SHELL else "read"
        figures: dict[int, float] = {}
        for count, rounds in ((30, 5), (300, 3), *(((3000, 2),) if long else ())):
            ours, floor = await bench.pair(count, call, rounds)
            figures[count] = min(spent.per_turn() for spent in ours)
            base = min(spent.per_turn() for spent in floor)
            report.row(f"a turn with one {kind}, {count:,} turns, ms", figures[count], base, limit)
            if call is SHELL:
                ceiling = {30: 60, 300: 80}.get(count)
                peak, base = await bench.memory(count, call)
                report.row(f"  peak memory, {count:,} turns, MB", peak, base, ceiling)
        if long:
            report.row(
                f"{kind}: the 3,000-turn figure over the 30-turn",
                figures[3000] / figures[30],
                limit=1.5,
            )


def measure_log(report: Report) -> None:
    """Append and replay rates, against plain writes and `json.loads` of the same lines."""
    from trimtab.contracts.events.tool import ToolExecutionComplete
    from trimtab.session.log import EventLog
    from trimtab.session.session import Projections, Session, replay

    folder = tempfile.mkdtemp(prefix="trimtab-bench-log-")
    path = f"{folder}/events.jsonl"
    session = Session("x", EventLog.create(path), Projections())
    result = {"content": "x" * 500, "detailedContent": "x" * 100}
    data = ToolExecutionComplete(tool_call_id="c", success=True, result=result)
    count = 20_000
    ours = microseconds(count, lambda: session.emit(data))
    session.close()
    lines = Path(path).read_bytes().split(b"\n")[:-1]
    plain = iter(lines)
    fd = os.open(f"{folder}/plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    floor = microseconds(
        count, lambda: os.write(fd, json.dumps(json.loads(next(plain))).encode() + b"\n")
    )
    report.row("emit an event of 800 bytes, µs", ours, floor)
    ours = microseconds(1, lambda: replay(path)) / count
    plain = iter(lines)
    report.row("replay an event, µs", ours, microseconds(count, lambda: json.loads(next(plain))))


def microseconds(count: int, work: Any) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count * 1e6


def least(runs: list[Spent], field: str) -> float:
    return float(min(getattr(spent, field) for spent in runs))


def median(runs: list[Spent], field: str) -> float:
    return float(statistics.median(getattr(spent, field) for spent in runs))


async def main() -> None:
    venv = install()
    server = TimedServer(turns(0, SHELL))
    await server.start()
    report = Report()
    bench = Bench(venv, server)
    await measure_start(bench, report)
    await measure_codex(bench.trimtab, bench.project, server, report.row)
    ours, floor = connect_ms(bench.trimtab), bare_ms(bench.python)
    report.row("spawn to connect reply, ms", ours, floor, limit=150)
    await measure_editor(bench.trimtab, bench.python, report.row)
    measure_bridge(bench.trimtab, report.row)
    await measure_turns(bench, report, long="--quick" not in sys.argv)
    await measure_discovery(bench.trimtab, server, report.row)
    await measure_servers(bench.trimtab, server, report.row)
    await server.stop()
    report.row("installed, MB", installed_mb(venv), limit=80)
    measure_log(report)
    for size in SIZES:
        first, again, floor = snapshot_ms(size)
        report.row(f"first snapshot of {size:,} files, ms", first)
        limit = LIMIT if size == SIZES[-1] else None
        report.row(f"snapshot of {size:,} unchanged files, ms", again, floor, limit)
    for what, value, base, limit in await measure_terminal():
        report.row(what, value, base, limit)
    for what, value, base in await measure_hands():
        report.row(what, value, base)
    spent = await measure_sandbox()
    if spent:
        over = spent["sandboxed"] - spent["bare"]
        report.row("a command in the sandbox, ms over bare", over, limit=40)
    for name, value in spent.items():
        if name.startswith("fence "):
            over = value - spent["bare"]
            report.row(f"a command behind the {name}, ms over bare", over, limit=5)
    if "with hosts" in spent:
        report.row("  with a list of hosts, ms over bare", spent["with hosts"] - spent["bare"])
    for wire in WIRES:
        speed, times, first = await asyncio.to_thread(measure_wire, wire)
        report.row(f"{wire} stream, MB/s", speed)
        report.row(f"{wire} stream, times the bytes alone", times)
        report.row(f"{wire} first token, ms over bare", first)
    report.row("tokens counted, MB/s", measure_counting())
    print("\nmissed: " + (", ".join(report.missed) or "nothing"))


if __name__ == "__main__":
    asyncio.run(main())
