"""Agents at work, written to and stopped from outside: python tests/properties/crew_load.py [AGENTS].

Every message and every stop is timed at another process, from the request to its acknowledgement,
while all agents stream answers and run commands.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trimtab.cli.live_sessions import list_tasks, reach_sessions
from trimtab.testing import ModelServer, Script

TRIMTAB = os.path.join(os.path.dirname(sys.executable), "trimtab")
MAX_P99_MS = 200.0
MESSAGES = 4
"""Messages to each agent."""


def start(number: int) -> dict[str, Any]:
    arguments = {
        "description": "work",
        "prompt": f"Work {number}.",
        "agent_type": "general-purpose",
        "mode": "background",
    }
    return {"name": "task", "arguments": arguments}


def build_script(agents: int) -> Script:
    sleep = {"command": "echo $RANDOM; sleep 0.5", "description": "work"}
    work = {
        "text": "I work and work and work.",
        "chunk": 4,
        "chunk_delay": 0.02,
        "tools": [{"name": "bash", "arguments": sleep}],
    }
    return Script.of(
        {
            "replies": [
                {"when": {"last": "go!"}, "repeat": 1, "tools": [start(n) for n in range(agents)]},
                {"when": {"last": "works in the background"}, "text": "They work."},
                {"when": {"last": "stopped by the user"}, "text": "Noted."},
            ],
            "otherwise": work,
        }
    )


async def load(agents: int) -> dict[str, Any]:
    """Return how long acknowledgements took, and what is left of the agents at the end."""
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer(build_script(agents)) as server:
            env = {
                "PATH": os.environ["PATH"],
                "HOME": folder,
                "COPILOT_HOME": os.path.join(folder, "home"),
                "COPILOT_PROVIDER_BASE_URL": server.base_url,
                "COPILOT_PROVIDER_API_KEY": "test-key-0123456789",
                "COPILOT_MODEL": "scripted",
                "COPILOT_SUBAGENT_MAX_CONCURRENT": str(agents + 1),
                "TRIMTAB_LOCAL_SERVERS": "off",
            }
            return await measure(agents, folder, env)


async def measure(agents: int, folder: str, env: dict[str, str]) -> dict[str, Any]:
    command = ["-p", "go!", "--allow-all", "--max-repeats", "0", "--output-format", "json"]
    process = await asyncio.create_subprocess_exec(
        TRIMTAB, *command, cwd=folder, env=env, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60 + agents):
            tasks: list[Any] = []
            while (
                sum(
                    t.task["status"] == "running" and bool(t.task["toolCallId"])
                    for t in tasks
                    if t.task["type"] == "agent"
                )
                < agents
            ):
                await asyncio.sleep(0.2)
                visitors = await reach_sessions(env)
                tasks = await list_tasks(visitors)
        (visitor,) = visitors
        ids = [t.id for t in tasks if t.task["type"] == "agent" and t.task["toolCallId"]]
        times, failures = [], 0
        for call, params in (("sendMessage", {"message": "Go on."}), ("cancel", {})):
            for agent in ids * (MESSAGES if params else 1):
                began = time.perf_counter()
                reply = await visitor.call(f"session.tasks.{call}", id=agent, **params)
                times.append(time.perf_counter() - began)
                failures += not any(reply.values())
        stopped = time.perf_counter()
        async with asyncio.timeout(60):
            code = await process.wait()
        return {
            "times": sorted(times),
            "failures": failures,
            "code": code,
            "end": time.perf_counter() - stopped,
            "processes": count_processes(folder),
        }
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def count_processes(folder: str) -> int:
    """Return how many processes work in a folder."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            found += entry.name.isdigit() and os.readlink(entry / "cwd").startswith(folder)
        except OSError:
            continue
    return found


def main() -> int:
    agents = int((*sys.argv[1:], "50")[0])
    outcome = asyncio.run(load(agents))
    times = [seconds * 1000 for seconds in outcome["times"]]
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; {outcome['failures']} refused, "
        f"{outcome['processes']} processes left, ended in {outcome['end']:.1f} s"
    )
    return bool(outcome["failures"] or p99 > MAX_P99_MS or outcome["processes"])


if __name__ == "__main__":
    sys.exit(main())
