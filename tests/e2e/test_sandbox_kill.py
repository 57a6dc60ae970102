"""A sandboxed command does not outlive the program that started it, however that ends."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from clikit import Cli, bash, serving

SLEEP = b"sleep\x0086421.5"


def find_sleepers() -> list[int]:
    """The processes of the command, which has a number that nobody else sleeps for."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(SLEEP):
                found.append(int(pid))
    return found


async def wait_readable(fd: int) -> None:
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def wait_for_end(pid: int) -> None:
    """Until a process that is no child of ours has ended."""
    with suppress(ProcessLookupError):
        await wait_readable(os.pidfd_open(pid))


async def test_a_killed_program_leaves_no_sandboxed_process_behind(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    os.mkfifo(cli.cwd / "told")
    told = os.open(cli.cwd / "told", os.O_RDONLY | os.O_NONBLOCK)
    command = "setsid sleep 86421.5 & sleep 86421.5 & sleep 0.2; tee told <<< up; wait"
    async with serving([{"tools": [bash(command)]}, "done"]) as server:
        args = ("-p", "go", "--output-format", "json", "--yolo", "--sandbox")
        process = await cli.use(server).start(*args)
        async with asyncio.timeout(60):
            await wait_readable(told)
            running = find_sleepers()
            os.kill(process.pid, signal.SIGKILL)
            await process.communicate()
            await asyncio.gather(*map(wait_for_end, running))
    assert len(running) == 2
    assert find_sleepers() == []
