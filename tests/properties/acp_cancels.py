"""Cancels at random moments: python tests/properties/acp_cancels.py [COUNT] [SEED].

Every prompt must be answered `cancelled` or have ended before; afterwards no process may be left,
every call must have ended, and the history must be valid.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from acpkit import connected
from clikit import Cli, bash, serving
from conformance import check_lines

MARK = "987.654321"
"""The argument of every `sleep`, by which a process that is left is recognised."""
SCRIPT = {
    "replies": [],
    "otherwise": {
        "reasoning": {"text": "thinking it over"},
        "text": "working on it",
        "chunk": 4,
        "chunk_delay": 0.01,
        "tools": [bash(f"touch made; sleep {MARK}")],
        "repeat": "forever",
    },
}
LONGEST = 0.5


def find_left() -> list[str]:
    """The processes of commands that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if MARK.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


async def cancel_often(count: int, seed: int) -> tuple[list[str], list[float]]:
    """Return what went wrong, and the milliseconds from each cancel to its answer."""
    chance, problems, times = random.Random(seed), list[str](), list[float]()
    cli = Cli(Path(tempfile.mkdtemp(prefix="trimtab-acp-cancels-")))
    async with serving(SCRIPT) as server, connected(cli.use(server), "--allow-all") as link:
        await link.open()
        for _ in range(count):
            turn = asyncio.create_task(link.say())
            await asyncio.sleep(chance.random() * LONGEST)
            began = time.monotonic()
            await link.agent.cancel(session_id=link.session)
            reason = await turn
            times.append((time.monotonic() - began) * 1000)
            if reason != "cancelled":
                problems.append(f"answered {reason}")
        for call in link.editor.calls().values():
            if call["statuses"][-1] not in ("failed", "completed"):
                problems.append(f"call left {call['statuses'][-1]}")
    problems += [f"process {left} is left" for left in find_left()]
    for log in cli.logs():
        check_lines(log.read_bytes().rstrip(b"\n").split(b"\n"))
    return problems, times


def main() -> int:
    count, seed = (int(word) for word in (sys.argv[1:] + ["50", "1"][len(sys.argv) - 1 :]))
    problems, times = asyncio.run(cancel_often(count, seed))
    for problem in sorted(set(problems))[:10]:
        print(problem)
    slowest = statistics.quantiles(times, n=100)[98]
    print(f"{len(problems)} wrong, p99 {slowest:.0f} ms (target 200)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
