"""Many MCP servers, and kills: python tests/properties/mcp_servers.py [KILLS] [SEED].

Twenty servers, of which five are dead, five slow, five noisy and five good: once their tools are
known, the first request leaves as without servers, and the good tools are there within two
seconds at the first time. Then runs with servers are killed at random moments: no process may be
left of any.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clikit import Cli, bash, serving
from mcpkit import PYTHON, SCRIPT, configure
from trimtab.testing import ModelServer, Script

KILLS = 200
GOOD_SECONDS = 2.0
LEFT_SECONDS = 5.0
ROUNDS = 5
DEAD: dict[str, object] = {"command": "/no/such/program", "args": []}
SLOW: dict[str, object] = {
    "command": "sh",
    "args": ["-c", f"sleep 4; exec {' '.join((*PYTHON, SCRIPT))}"],
}


def entry(mode: str, mark: str) -> dict[str, object]:
    """A server; it and all it starts are recognised by a variable."""
    args = [*PYTHON[1:], SCRIPT, mode, os.devnull]
    return {"command": PYTHON[0], "args": args, "env": {"MARK": mark}, "tools": ["echo"]}


def make_servers(mark: str) -> dict[str, dict[str, object]]:
    made: dict[str, dict[str, object]] = {}
    for number in range(5):
        made[f"dead{number}"] = DEAD
        made[f"slow{number}"] = SLOW
        made[f"noisy{number}"] = entry("stderr", mark)
        made[f"good{number}"] = entry("plain", mark)
    return made


class TimedServer(ModelServer):
    """Notes when its first request arrives."""

    arrived = 0.0

    async def _answer_call(self, exchange: Any, wire: Any) -> None:
        self.arrived = self.arrived or time.monotonic()
        await super()._answer_call(exchange, wire)


async def first_request(cli: Cli, *replies: Any) -> tuple[float, set[str]]:
    """Return the seconds to the first request of a run, and the tools it offered."""
    async with TimedServer(Script.of([*replies, "Done."])) as server:
        began = time.monotonic()
        await cli.use(server).run("-p", "hi", "--output-format", "json", "--allow-all")
        tools = server.requests[0].json["tools"]
    return server.arrived - began, {tool["function"]["name"] for tool in tools}


async def compare_starts(folder: Path, mark: str) -> list[str]:
    """Return what is wrong with starts among many servers."""
    without, among = Cli(folder / "without"), Cli(folder / "among")
    configure(among.home / "mcp-config.json", **make_servers(mark))
    seconds, tools = await first_request(among, {"tools": [bash("sleep 12")]})
    good = {f"good{number}-echo" for number in range(5)}
    print(f"first request with 20 unknown servers: {seconds:.2f} s, {len(good & tools)} good ones")
    problems = [] if seconds < GOOD_SECONDS else [f"the first request took {seconds:.2f} s"]
    bare, known, seen = [], [], set[str]()
    for _ in range(ROUNDS):
        bare.append((await first_request(without))[0])
        taken, seen = await first_request(among)
        known.append(taken)
    print(f"known servers: {min(known) * 1000:.0f} ms, without: {min(bare) * 1000:.0f} ms")
    if not good <= seen:
        problems.append(f"tools of good servers are missing: {sorted(good - seen)}")
    return problems


def find_left(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


async def wait_for_end(mark: str) -> list[str]:
    """Return the processes that are left after a while."""
    for _ in range(int(LEFT_SECONDS / 0.02)):
        if not (left := find_left(mark)):
            break
        await asyncio.sleep(0.02)
    return left


async def kill_often(folder: Path, mark: str, count: int, seed: int) -> list[str]:
    """Return the processes that outlived a killed run."""
    chance, cli = random.Random(seed), Cli(folder / "killed")
    servers = {
        "plain": entry("plain", mark),
        "stubborn": entry("stubborn", mark),
        "noisy": entry("stderr", mark),
    }
    configure(cli.home / "mcp-config.json", **servers)
    call = {"name": "plain-echo", "arguments": {"text": "hi"}}
    script = {"replies": [], "otherwise": {"tools": [call], "repeat": "forever"}}
    problems: list[str] = []
    async with serving(script) as server:
        for number in range(count):
            words = ("-p", "hi", "--output-format", "json", "--allow-all", "--max-repeats", "0")
            process = await cli.use(server).start(*words)
            await asyncio.sleep(chance.uniform(0.0, 1.2))
            if process.returncode is None:
                process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)))
            await process.communicate()
            if left := await wait_for_end(mark):
                problems.append(f"kill {number}: {', '.join(left)}")
    return problems


async def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    mark = f"trimtab-mcp-{random.Random(seed).randrange(10**9)}"
    with tempfile.TemporaryDirectory(prefix="trimtab-mcp-") as name:
        folder = Path(name)
        problems = await compare_starts(folder, mark)
        problems += await kill_often(folder, mark, count, seed)
    print(json.dumps(problems[:10], indent=2) if problems else f"{count} kills, nothing left")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
