"""The inline interface: start, bytes and processor time of a stream, keys, memory, cancelling."""

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from clikit import Cli, bash, serving
from tuikit import Terminal, open_terminal

Row = tuple[str, float, float | None, float | None]
DELTAS = 2000
WORDS = "the quick brown fox jumps over a lazy dog and then it sleeps for quite a while again\n"
ASK = {"name": "ask_user", "arguments": {"question": "Colour?", "choices": ["red", "green"]}}


def new_cli() -> Cli:
    return Cli(Path(tempfile.mkdtemp(prefix="trimtab-bench-terminal-")))


async def wait_for(terminal: Terminal, text: str, start: int = 0) -> None:
    """Wait until these bytes were sent; faster than asking the emulator."""
    await terminal.until(lambda: text.encode() in terminal.bytes[start:], text)


def bare_start_ms() -> float:
    def run() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        return (time.perf_counter() - began) * 1000

    return min(run() for _ in range(5))


async def start_ms() -> float:
    """Exec to a prompt of an open session."""
    found = []
    async with serving([]) as server:
        for _ in range(6):
            cli = new_cli().use(server)
            began = time.perf_counter()
            async with open_terminal(cli) as terminal:
                await wait_for(terminal, "Ask anything")
                found.append((time.perf_counter() - began) * 1000)
    return min(found[1:])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


async def measure_stream() -> list[Row]:
    """Stream 250 deltas a second, and type meanwhile."""
    text = (WORDS * (DELTAS * 8 // len(WORDS) + 1))[: DELTAS * 8]
    script = [{"text": text + "THE END", "chunk": 8, "chunk_delay": 0.004}]
    delays: list[float] = []
    async with serving(script) as server, open_terminal(new_cli().use(server)) as terminal:
        await wait_for(terminal, "Ask anything")
        memory = rss_mb(terminal.process.pid)
        terminal.type("go\r")
        await wait_for(terminal, "quick brown")
        cpu, sent = cpu_seconds(terminal.process.pid), len(terminal.bytes)
        for count in range(1, 61):
            await asyncio.sleep(0.05 + random.random() / 50)
            mark, began = len(terminal.bytes), time.perf_counter()
            terminal.type("Z")
            await wait_for(terminal, "Z" * count, mark)
            delays.append((time.perf_counter() - began) * 1000)
        await terminal.until(lambda: b"THE END" in terminal.bytes[-4000:], "the end")
        cpu = cpu_seconds(terminal.process.pid) - cpu
        sent = len(terminal.bytes) - sent
    delays.sort()
    plain = await plain_memory()
    return [
        ("terminal: bytes per 1,000 deltas, KB", sent / DELTAS * 1000 / 1024, None, 150.0),
        ("terminal: CPU per 1,000 deltas, ms", cpu / DELTAS * 1e6, None, None),
        ("terminal: key to screen while streaming, ms p95", delays[56], None, 50.0),
        ("terminal: memory over the plain dialog, MB", memory - plain, None, 25.0),
    ]


async def plain_memory() -> float:
    async with serving([]) as server:
        cli = new_cli().use(server)
        async with open_terminal(cli, "--plain") as terminal:
            await wait_for(terminal, "/help lists commands")
            return rss_mb(terminal.process.pid)


STATES: dict[str, tuple[list[Any], str, str, str]] = {
    "waiting for the model": ([{"delay": 60, "text": "x"}], "Working", "", "\x1b"),
    "streaming prose": ([{"text": WORDS * 400, "chunk_delay": 0.01}], "quick", "", "\x1b"),
    "streaming code": (
        [{"text": "```python\n" + "x = 1\n" * 4000, "chunk_delay": 0.01}],
        "x = ",
        "",
        "\x1b",
    ),
    "streaming a table": (
        [{"text": "| a | b |\n" * 4000, "chunk_delay": 0.01}],
        "| a",
        "",
        "\x1b",
    ),
    "a silent command": ([{"tools": [bash("sleep 60")]}], "sleep 60", "", "\x1b"),
    "a printing command": (
        [{"tools": [bash("while true; do echo out; sleep 0.01; done")]}],
        "│ out",
        "",
        "\x1b",
    ),
    "two commands": (
        [{"tools": [bash("sleep 60"), bash("sleep 61")]}],
        "sleep 60",
        "",
        "\x1b",
    ),
    "a permission question": ([{"tools": [bash("touch x")]}], "yes, once", "", "\x03"),
    "a question of the model": ([{"tools": [ASK]}], "Colour?", "", "\x03"),
    "a draft": ([{"delay": 60, "text": "x"}], "Working", "half a sent", "\x1b"),
    "an open menu": ([{"delay": 60, "text": "x"}], "Working", "/us", "\x03"),
    "a queued prompt": ([{"delay": 60, "text": "x"}], "Working", "later\x11", "\x1b"),
}
"""State → the model's script, what shows that it is reached, keys typed first, the key."""


async def measure_cancel(times: int) -> list[float]:
    """Return the milliseconds from the key to the screen that says the turn is stopped."""
    found = []
    for name, (script, reached, typed, key) in STATES.items():
        flags = () if "question" in name else ("--allow-all",)
        for _ in range(times):
            async with (
                serving(script) as server,
                open_terminal(new_cli().use(server), "-i", "go", *flags) as terminal,
            ):
                await wait_for(terminal, reached)
                if typed:
                    terminal.type(typed)
                    await wait_for(terminal, typed.rstrip("\x11"))
                await asyncio.sleep(0.2)
                mark, began = len(terminal.bytes), time.perf_counter()
                terminal.type(key)
                await wait_for(terminal, "Stopped by the user", mark)
                found.append((time.perf_counter() - began) * 1000)
                print(f"  cancel, {name}: {found[-1]:.0f} ms", file=sys.stderr)
    return found


async def measure_terminal(times: int = 3) -> list[Row]:
    """Return the rows for `make bench`."""
    rows: list[Row] = [
        ("terminal: exec to a usable prompt, ms", await start_ms(), bare_start_ms(), 250.0)
    ]
    rows += await measure_stream()
    cancels = sorted(await measure_cancel(times))
    p99 = cancels[min(len(cancels) - 1, len(cancels) * 99 // 100)]
    rows.append(
        ("terminal: cancel in 12 states, ms median", statistics.median(cancels), None, None)
    )
    rows.append(("terminal: cancel in 12 states, ms p99", p99, None, 200.0))
    return rows


async def main() -> None:
    for what, value, floor, limit in await measure_terminal():
        print(f"{what:<50} {value:9.1f} floor {floor or 0:.1f} target {limit}")


if __name__ == "__main__":
    asyncio.run(main())
