"""Tracks every process that a command starts, so that all of them can be ended.

A command may double-fork, call setsid, clear its environment and close its descriptors. But it
keeps its resource limits: children inherit them, and nobody sets the time-out of real-time tasks.
So each command starts with a unique value of that limit, its *tag*, which finds all its
descendants. If this process dies, even by SIGKILL, a guardian (a sleeping shell) sees its pipe
close and kills every process with one of this process's tags.
"""

import asyncio
import itertools
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

TAG_LIMIT: int | None = getattr(resource, "RLIMIT_RTTIME", None)
"""The limit that carries tags. Without it, a command's processes are found by their session."""

PREFIX = f"1{int.from_bytes(os.urandom(4), 'big'):010d}"
serial = itertools.count(1)

GUARDIAN = f"""trap '' HUP INT TERM QUIT; read -r word && exit 0
for round in 1 2 3 4 5 6 7 8; do
  found=$(grep -ls 'realtime timeout  *{PREFIX}' /proc/[0-9]*/limits)
  [ "$found" ] || exit 0
  for file in $found; do pid=${{file#/proc/}}; kill -9 "${{pid%/limits}}" 2>/dev/null; done
done"""

GUARDIAN_START = b"/bin/sh\0-c\0" + GUARDIAN.partition("\n")[0].encode()
GUARDIAN_SECONDS = 1.5
"""Seconds that the guardian of an agent inside a command has to end that agent's commands."""
POLL_SECONDS = 0.005
"""Seconds between two looks at a process whose end cannot be waited for."""
KILL_TIMEOUT = 3.0
"""Seconds until we give up on processes that cannot be killed (root's, stuck in the kernel)."""


def new_tag() -> int | None:
    """Return a tag for a command, or None if the limit cannot be set."""
    if TAG_LIMIT is None:
        return None
    tag = int(f"{PREFIX}{next(serial) % 10**7:07d}")
    highest = resource.getrlimit(TAG_LIMIT)[1]
    return tag if highest == resource.RLIM_INFINITY or highest > tag else None


@contextmanager
def tagging(tag: int | None) -> Iterator[None]:
    """Tag the processes that are started inside. This process has the tag meanwhile, to no effect.

    Only for the event loop's thread: processes that other threads start would be tagged too.
    """
    if tag is None or TAG_LIMIT is None:
        yield
        return
    own = resource.getrlimit(TAG_LIMIT)
    resource.setrlimit(TAG_LIMIT, (tag, own[1]))
    try:
        yield
    finally:
        resource.setrlimit(TAG_LIMIT, own)


def restore_signals() -> None:
    """Let commands receive interrupts, even if this program was started to ignore them.

    A new program inherits ignored signals, but not signals with a handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    tag: int | None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Start a program in a session of its own and return its process id.

    Raises an `OSError` whose `strerror` says why it could not be started and what to do.
    """
    stdin, stdout, stderr = streams
    restore_signals()
    try:
        if os.path.isabs(argv[0]):
            os.stat(argv[0])  # starting a process only to find nothing there takes milliseconds
        with tagging(tag):
            process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=env,
                start_new_session=True,
                pass_fds=pass_fds,
            )
    except OSError as error:
        from trimtab.workspace.start_failure import explain

        raise explain(error, argv, cwd) from None
    # We wait for the process ourselves; this keeps Popen from doing so too.
    process.returncode = 0
    return process.pid


def processes_of(tag: int | None, leader: int, *, recent: bool = False) -> list[int]:
    """Return the processes of a command, including zombies; `recent` if it began just now."""
    return [pid for pid in candidates(leader, recent) if belongs(pid, tag, leader)]


def belongs(pid: int, tag: int | None, leader: int) -> bool:
    try:
        if tag is None or TAG_LIMIT is None:
            return os.getsid(pid) == leader
        return resource.prlimit(pid, TAG_LIMIT)[0] == tag
    except (OSError, ValueError):
        return False


def candidates(leader: int, recent: bool) -> Iterable[int]:
    """Return possible descendants of a process: all, or those with a pid assigned since."""
    try:
        if recent:
            with open("/proc/loadavg", "rb") as file:
                newest = int(file.read().rsplit(None, 1)[1])
            if leader <= newest <= leader + 500:
                return range(leader, newest + 1)
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except (OSError, ValueError, IndexError):
        return ()


def survivors(tag: int | None, leader: int, *, recent: bool) -> list[int]:
    """Return the living processes of a command whose shell has exited; reap the dead.

    A process may fork and exit during the scan, and its child get a pid already scanned: the
    command is over only if two scans find nothing.
    """
    for _ in range(2):
        found = processes_of(tag, leader, recent=recent)
        if alive := living(pid for pid in found if pid != leader):
            return alive
    return []


async def wait_for(pid: int, seconds: float) -> None:
    """Wait until a process has ended or the time is over, or for a moment if nobody tells us."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # on macOS, or with too many files open
        await asyncio.sleep(min(seconds, POLL_SECONDS))
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def living(pids: Iterable[int]) -> list[int]:
    """Return the processes that are alive; reap the dead whose parent we have become."""
    alive = []
    for pid in pids:
        if is_alive(pid):
            alive.append(pid)
        else:
            reap(pid)
    return alive


def descendants(roots: Iterable[int]) -> set[int]:
    """Return all descendants of the given processes through living parents."""
    children: dict[int, list[int]] = {}
    for pid in candidates(0, recent=False):
        children.setdefault(parent_of(pid), []).append(pid)
    found: set[int] = set()
    fresh = list(roots)
    while fresh:
        fresh = [child for pid in fresh for child in children.get(pid, ()) if child not in found]
        found.update(fresh)
    return found


def family_of(tag: int | None, leader: int) -> dict[int, int]:
    """Return the descendants of a command with the times they started.

    An agent inside the command tags its own commands, so they are found only while it lives.
    """
    found = descendants(processes_of(tag, leader))
    return {pid: started for pid in found if (started := start_of(pid))}


def start_of(pid: int) -> int:
    """Return when a process started, in ticks since the machine did; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def is_guardian(pid: int) -> bool:
    """Return True for a guardian, ours or that of another agent."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(GUARDIAN_START)
    except OSError:
        return False


def parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


async def end(tag: int | None, leader: int, family: Mapping[int, int] = {}) -> None:
    """Kill a command's process group and every descendant, until none is left, not even zombies.

    Zombies become our children one by one, as their own parents die. Only the leader is left for
    its owner to reap, who needs its exit status. `family` are descendants from before the command
    was asked to end: by now they may have lost the parents by which they would be found.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + KILL_TIMEOUT
    pause, rounds = 0.001, 0
    # An agent inside this command tags its own commands: those are found as descendants.
    related = descendants(processes_of(tag, leader))
    related |= {pid for pid, started in family.items() if start_of(pid) == started}
    send(-leader, signal.SIGKILL)
    while found := related.union(processes_of(tag, leader) or processes_of(tag, leader)):
        alive = living(found - {leader})
        if leader in found and is_alive(leader):
            alive.append(leader)
        related.intersection_update(alive)
        spared = loop.time() < deadline - KILL_TIMEOUT + GUARDIAN_SECONDS
        for pid in alive:
            if not (spared and is_guardian(pid)):
                send(pid, signal.SIGKILL)
        rounds = 0 if alive else rounds + 1
        if (found == {leader} and rounds > 1) or rounds > 10 or loop.time() > deadline:
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05) if alive else 0.002


def send(pid: int, number: int) -> None:
    """Signal a process, or a group by its negative id, if it exists and is ours."""
    try:
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class Guardian:
    """A process that kills tagged processes if this one dies.

    Started with the first command, released with the last workspace.
    """

    def __init__(self) -> None:
        self._users = 0
        self._pid = 0
        self._pipe = -1

    def acquire(self) -> None:
        if self._users or TAG_LIMIT is None:
            self._users += 1
            return
        reading, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        # Without a tag of its own it would have the one this process was started with, and die with
        # this process if that is a command of another agent, before it could end our commands.
        untagged = resource.getrlimit(TAG_LIMIT)[1]
        try:
            self._pid = spawn(
                ["/bin/sh", "-c", GUARDIAN],
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
                streams=(reading, null, null),
                tag=untagged,
            )
        except BaseException:
            os.close(self._pipe)
            self._pipe = -1
            raise
        finally:
            os.close(reading)
            os.close(null)
        self._users = 1
        asyncio.get_running_loop().call_later(0.05, adopt_orphans)

    async def release(self) -> None:
        self._users -= 1
        if self._users or self._pipe < 0:
            return
        pid, pipe, self._pipe = self._pid, self._pipe, -1
        with suppress(BrokenPipeError):
            os.write(pipe, b"released\n")
        os.close(pipe)
        for _ in range(200):
            if not living([pid]):
                return
            await asyncio.sleep(0.001)


guardian = Guardian()


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, to reap them."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
