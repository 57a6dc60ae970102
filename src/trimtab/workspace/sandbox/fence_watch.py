"""Watches a fenced command: ends it if it takes too many processes, too much memory, disk or time.

The limits of processes (`ulimit`) hold for each of them. What they take together is measured once
a second, and as soon as so much of the machine's memory or disk has gone since the command started.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

import msgspec

from trimtab.workspace import process_tracking
from trimtab.workspace.sandbox.confinement import Start
from trimtab.workspace.sandbox.temp_folder import measure_held

CHECK_SECONDS = 0.01
"""Seconds between two looks."""
MEASURE_SECONDS = 1.0
"""Seconds between two measurements of what a command has taken."""
HELD = ("RssAnon:", "RssShmem:", "VmPTE:", "VmSwap:")
HELD_FOR_SURE = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
"""The memory of a process in `/proc/PID/status`, and in `smaps_rollup` without counting twice."""
FIRST_TO_END = b"1000"
"""The score of processes that the kernel ends before others when memory runs out."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for all processes of a command together, in bytes but for numbers and seconds."""

    processes: int = 256
    seconds: float = 600.0
    memory: int = 4 << 30
    """At most half of the machine's."""
    temp: int = 2 << 30
    files: int = 50_000
    """The number of files in the temp folder."""
    loss: int = 8 << 30
    """The most that the disk may lose meanwhile: a command can hide files from us."""


class Reserve:
    """Something that the machine has less of while a command takes it."""

    def __init__(self, measure: Callable[[], int]) -> None:
        self._measure = measure
        self._highest = measure()

    def measure_fall(self) -> int:
        """Return how much has gone since there was most."""
        left = self._measure()
        self._highest = max(self._highest, left)
        return self._highest - left


class Watch:
    """Ends a command that takes too much. Without an event loop nobody could be told."""

    def __init__(self, pid: int, start: Start, temp: str, totals: Totals) -> None:
        self._pid = pid
        self._tag = start.tag
        self._say = start.say
        self._temp = temp
        self._totals = totals
        self._until = time.monotonic() + totals.seconds
        self._measured = time.monotonic()
        self._many = False
        self._memory = Reserve(find_free_memory)
        self._disk = Reserve(lambda: find_free_disk(temp))
        self._names = Reserve(lambda: find_free_names(temp))
        self._task: asyncio.Task[None] | None = None
        with suppress(RuntimeError):
            self._timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._check)

    def stop(self) -> None:
        with suppress(AttributeError):
            self._timer.cancel()

    def _check(self) -> None:
        began = time.monotonic()
        reason = self._find_reason(began)
        loop = asyncio.get_running_loop()
        if not reason:
            pause = max(CHECK_SECONDS, 10 * (time.monotonic() - began))
            self._timer = loop.call_later(pause, self._check)
            return
        if self._say is not None:
            self._say(f"<stopped by the fence: {reason}>\n")
        process_tracking.send(-self._pid, signal.SIGKILL)
        self._task = loop.create_task(process_tracking.end(self._tag, self._pid))

    def _find_reason(self, now: float) -> str:
        """Return why the command must end, or an empty text."""
        most = self._totals
        # Numbers are used again when they run out, so what was seen once is kept.
        self._many = self._many or not 0 <= find_newest() - self._pid < most.processes
        if self._many and len(self._list()) > most.processes:
            return f"it started more than {most.processes} processes"
        memory = min(most.memory, find_half_of_memory())
        is_due = now - self._measured > MEASURE_SECONDS
        self._measured = now if is_due else self._measured
        if is_due or self._memory.measure_fall() > memory // 2:
            pids = self._list()
            if measure_memory(pids, memory) > memory:
                return f"it took more than {memory >> 20} MB of memory"
            for pid in pids:  # those that were started before their parent had the score
                end_first(pid)
        fall = self._disk.measure_fall()
        if fall > most.loss:
            return f"the disk lost {most.loss >> 20} MB while it ran"
        if is_due or fall > most.temp // 2 or self._names.measure_fall() > most.files // 2:
            size, files = measure_held(self._temp, self._list(), most.files)
            if size > most.temp or files >= most.files:
                kept = f"{most.temp >> 20} MB or {most.files} files"
                return f"its temp folder held more than {kept}"
        if now > self._until:
            return f"it ran for more than {most.seconds / 60:g} minutes"
        return ""

    def _list(self) -> Sequence[int]:
        return process_tracking.processes_of(self._tag, self._pid)


@cache
def find_half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def measure_memory(pids: Sequence[int], most: int) -> int:
    """Return the bytes of memory that processes hold together.

    What they share is first counted for each. Only if that is too much it is counted exactly,
    which takes longer.
    """
    roughly = sum(read_sizes(f"/proc/{pid}/status", HELD) for pid in pids)
    if roughly <= most:
        return roughly
    return sum(
        read_sizes(f"/proc/{pid}/smaps_rollup", HELD_FOR_SURE)
        or read_sizes(f"/proc/{pid}/status", HELD)
        for pid in pids
    )


def read_sizes(path: str, names: Sequence[str]) -> int:
    """Return the sum of some lines of a file about memory, in bytes."""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(tuple(names)))
    return 0


def find_free_memory() -> int:
    """Return the bytes of memory that programs can still get, 0 if it is not known."""
    return read_sizes("/proc/meminfo", ("MemAvailable:",))


def find_free_disk(folder: str) -> int:
    """Return the free bytes where a folder is, 0 if that is not known."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bfree * found.f_frsize


def find_free_names(folder: str) -> int:
    """Return how many files can still be made where a folder is, 0 if that is not known."""
    try:
        return os.statvfs(folder).f_ffree
    except OSError:
        return 0


def find_newest() -> int:
    """Return the id of the process or thread that was started last, 0 if it is not known."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[4])
    except (OSError, ValueError, IndexError):
        return 0


def end_first(pid: int) -> None:
    """Have the kernel end a process, and what it starts, first when memory runs out."""
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "wb") as file:
        file.write(FIRST_TO_END)
