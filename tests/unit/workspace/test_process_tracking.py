"""No process is left behind, whatever it does and whatever happens to us."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from toolkit import Bench, processes_with, until
from trimtab.workspace import process_tracking

VICTIM = """
import asyncio, sys
from pathlib import Path
from toolkit import Bench

async def main():
    bench = Bench(Path(sys.argv[1]))
    bench.workspace.shells._env["MARKER"] = sys.argv[2]
    for command in ("sleep 300", "setsid -f sleep 301; sleep 302", "trap '' TERM HUP; (sleep 303 &) ; cat"):
        await bench.bash(command, mode="async")
    print("ready", flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_when_the_agent_is_killed_its_commands_die(tmp_path: Path, number: int) -> None:
    marker = str(uuid4())
    victim = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        VICTIM,
        str(tmp_path),
        marker,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=asyncio.subprocess.PIPE,
    )
    assert victim.stdout is not None
    assert await victim.stdout.readline() == b"ready\n"
    await until(lambda: len(processes_with(marker)) >= 6)
    victim.send_signal(number)
    await victim.wait()
    await until(lambda: not processes_with(marker))


async def test_closing_the_workspace_ends_everything(bench: Bench) -> None:
    await bench.bash("sleep 100", mode="async")
    await bench.bash("setsid -f sleep 100; trap '' TERM; sleep 100", mode="async")
    await bench.bash("(setsid sh -c '(sleep 100 &)' &); sleep 100", mode="async")
    async with asyncio.timeout(50):
        await bench.workspace.aclose()
    assert processes_with(bench.session_id) == []


async def test_orphans_do_not_stay_as_zombies(bench: Bench) -> None:
    process_tracking.adopt_orphans()
    before = zombies()
    await bench.bash("for i in 1 2 3 4 5; do (setsid sh -c 'true &' &) ; done; sleep 0.1")
    await bench.bash("for i in 1 2 3; do (setsid sh -c 'sleep 9 & sleep 9' &) ; done")
    assert zombies() <= before


async def test_an_agent_inside_a_command_ends_with_all_it_started(bench: Bench) -> None:
    marker = str(uuid4())
    bench.write("inner.py", VICTIM)
    tests = Path(__file__).parents[2]
    command = f"PYTHONPATH={tests} {sys.executable} inner.py {bench.root} {marker}"
    await bench.bash(command, mode="async", shellId="inner")
    await until(lambda: len(processes_with(marker)) >= 6)
    await bench.call("stop_bash", shellId="inner")
    assert processes_with(marker) == []


async def test_a_forking_tree_is_ended(bench: Bench) -> None:
    script = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 100; }; f 5"
    await bench.bash(script, mode="async", shellId="tree")
    await until(lambda: len(processes_with(bench.session_id)) >= 64)
    await bench.call("stop_bash", shellId="tree")
    assert processes_with(bench.session_id) == []


async def test_other_commands_are_not_touched(bench: Bench) -> None:
    await bench.bash("(setsid sleep 100 &); cat", mode="async", shellId="stays")
    await bench.bash("sleep 100", mode="async", shellId="goes")
    await bench.call("stop_bash", shellId="goes")
    await bench.bash("setsid -f sleep 100")
    (shell,) = bench.workspace.shells.list()
    assert shell.exit_code is None
    assert any("sleep 100" in command for command in processes_with(bench.session_id))


def test_tags_do_not_stay_on_this_process() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_RTTIME)
    with process_tracking.tagging(process_tracking.new_tag()):
        assert resource.getrlimit(resource.RLIMIT_RTTIME) != before
    assert resource.getrlimit(resource.RLIMIT_RTTIME) == before


def zombies() -> set[str]:
    """Return our children that have exited and were not reaped."""
    return {
        pid
        for pid in filter(str.isdigit, os.listdir("/proc"))
        if process_tracking.parent_of(int(pid)) == os.getpid()
        and not process_tracking.is_alive(int(pid))
    }
