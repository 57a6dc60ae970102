"""`make bench`: speed and memory, as ratios to a bare-asyncio program measured in the same run."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measure import Spent, TimedServer, install, installed_mb, spawn, turns

FLOOR = Path(__file__).with_name("floor.py")
SHELL = {"name": "bash", "arguments": {"command": "true", "description": "nothing"}}
READ = {"name": "view", "arguments": {"path": "notes.txt"}}


class Report:
    """Rows of figure, floor, ratio, target."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def row(self, what: str, value: float, floor: float | None, target: str, *, ok: bool) -> None:
        ratio = f"{value / floor:6.2f}x" if floor else "      -"
        base = f"{floor:9.2f}" if floor else "        -"
        mark = "ok" if ok else "MISSED"
        if not ok:
            self.missed.append(what)
        print(f"{what:<44} {value:9.2f} {base} {ratio}  {target:<26} {mark}", flush=True)


async def best(
    count: int, argv: list[str | Path], server: TimedServer | None = None
) -> list[Spent]:
    return [await spawn(argv, server) for _ in range(count)]


async def main() -> None:
    quick = "--quick" in sys.argv
    venv = install()
    python, trimtab = venv / "bin" / "python", venv / "bin" / "trimtab"
    project = Path(tempfile.mkdtemp(prefix="trimtab-bench-project-"))
    notes = project / "notes.txt"
    notes.write_text("".join(f"line {n}\n" for n in range(40)))
    run = [
        trimtab,
        "-C",
        project,
        "-p",
        "Work until you are done.",
        "--output-format",
        "json",
        "--allow-all",
    ]
    report = Report()
    print(f"{'figure':<44} {'trimtab':>9} {'floor':>9} {'ratio':>7}  target")

    ours = min(s.wall for s in await best(15, [trimtab, "--version"]))
    floor = min(s.wall for s in await best(15, [python, "-I", FLOOR, "--version"]))
    report.row("--version, ms", ours, floor, "<= 25 ms idle", ok=ours <= 25 or ours / floor <= 2)

    server = TimedServer(turns(0, SHELL))
    await server.start()
    address = [server.host, str(server.port), "shell", notes]

    async def pair(
        script_turns: int, call: dict[str, object], rounds: int, kind: str
    ) -> tuple[list[Spent], list[Spent]]:
        ours, base = [], []
        for _ in range(rounds):
            server.load(turns(script_turns, call))
            ours.append(await spawn(run, server))
            server.load(turns(script_turns, call))
            base.append(
                await spawn(
                    [python, "-I", FLOOR, server.host, str(server.port), kind, notes], server
                )
            )
        return ours, base

    ours_runs, floor_runs = await pair(0, SHELL, 15, "shell")
    first, base = min(s.to_first for s in ours_runs), min(s.to_first for s in floor_runs)
    report.row(
        "exec to first request, ms", first, base, "<= 2.1x, 120 ms idle", ok=first / base <= 2.1
    )
    median = statistics.median(s.to_first for s in ours_runs)
    median_base = statistics.median(s.to_first for s in floor_runs)
    report.row("  the same, median", median, median_base, "", ok=True)
    exit_ms = min(s.exit_after_last for s in ours_runs)
    exit_floor = min(s.exit_after_last for s in floor_runs)
    report.row("last request to exit, ms", exit_ms, exit_floor, "", ok=True)

    flat: dict[str, dict[int, float]] = {"shell": {}, "read": {}}
    for kind, call, target in (("shell", SHELL, 6.0), ("read", READ, 2.0)):
        for count, rounds in ((30, 5), (300, 3), *(() if quick else ((3000, 1),))):
            ours_runs, floor_runs = await pair(count, call, rounds, kind)
            mine = min(s.per_turn() for s in ours_runs)
            base = min(s.per_turn() for s in floor_runs)
            flat[kind][count] = mine
            report.row(
                f"a turn with one {kind}, {count} turns, ms",
                mine,
                base,
                f"<= {target:g} ms",
                ok=mine <= target,
            )
            if count == 30 and kind == "shell":
                rss = min(s.rss_mb for s in ours_runs)
                base_rss = min(s.rss_mb for s in floor_runs)
                report.row("peak memory at 30 turns, MB", rss, base_rss, "<= 60 MB", ok=rss <= 60)
            if count == 300 and kind == "shell":
                rss = min(s.rss_mb for s in ours_runs)
                report.row(
                    "peak memory at 300 turns, MB",
                    rss,
                    min(s.rss_mb for s in floor_runs),
                    "<= 80 MB",
                    ok=rss <= 80,
                )
        if not quick:
            grown = flat[kind][3000] / flat[kind][30]
            report.row(
                f"{kind}: 3,000-turn figure over 30-turn", grown, None, "<= 1.5", ok=grown <= 1.5
            )
    await server.stop()

    size = installed_mb(venv)
    report.row("installed, MB", size, None, "<= 80 MB", ok=size <= 80)
    measure_log(report)
    print()
    print("missed: " + (", ".join(report.missed) or "nothing"))


def measure_log(report: Report) -> None:
    """Append and replay rates against plain writes and json.loads of the same lines."""
    import json
    import os

    from trimtab.contracts.events.tool import ToolExecutionComplete
    from trimtab.session.log import EventLog
    from trimtab.session.session import Projections, Session, replay

    folder = tempfile.mkdtemp(prefix="trimtab-bench-log-")
    path = f"{folder}/events.jsonl"
    session = Session("x", EventLog.create(path), Projections())
    data = ToolExecutionComplete(
        tool_call_id="c", success=True, result={"content": "x" * 500, "detailedContent": "x" * 100}
    )
    count = 20_000
    began = time.perf_counter()
    for _ in range(count):
        session.emit(data)
    ours = (time.perf_counter() - began) / count * 1e6
    session.close()
    lines = Path(path).read_bytes().split(b"\n")[:-1]
    fd = os.open(f"{folder}/plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began = time.perf_counter()
    for line in lines:
        os.write(fd, json.dumps(json.loads(line)).encode() + b"\n")
    floor = (time.perf_counter() - began) / count * 1e6
    report.row("emit an event (800 bytes), µs", ours, floor, "", ok=True)
    began = time.perf_counter()
    replay(path)
    ours = (time.perf_counter() - began) / count * 1e6
    began = time.perf_counter()
    for line in lines:
        json.loads(line)
    floor = (time.perf_counter() - began) / count * 1e6
    report.row("replay an event, µs", ours, floor, "", ok=True)


if __name__ == "__main__":
    asyncio.run(main())
