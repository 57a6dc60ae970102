"""Keeps hold of every process a command starts, so that none is left behind.

A command may double-fork, call setsid, clear its environment and close its descriptors. What it
cannot shed is a resource limit: children inherit it, and nobody sets the time-out of real-time
tasks. Each command starts under a value of that limit which is its own, its *tag*; by it all its
descendants are found. Should this process die, even by SIGKILL, a guardian (a sleeping shell) sees
its pipe close and kills what carries this process's tags.
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

TAGGED: int | None = getattr(resource, "RLIMIT_RTTIME", None)
"""The limit that carries tags. Where it is unknown, a command's session must do."""

PREFIX = f"1{int.from_bytes(os.urandom(4), 'big'):010d}"
serial = itertools.count(1)

GUARDIAN = f"""trap '' HUP INT TERM QUIT; read -r word && exit 0
for round in 1 2 3 4 5 6 7 8; do
  found=$(grep -ls 'realtime timeout  *{PREFIX}' /proc/[0-9]*/limits)
  [ "$found" ] || exit 0
  for file in $found; do pid=${{file#/proc/}}; kill -9 "${{pid%/limits}}" 2>/dev/null; done
done"""

ENDING = 3.0
"""Seconds until a tree that cannot be killed (owned by root, stuck in the kernel) is given up."""


def new_tag() -> int | None:
    """A tag for one command, or None where no such limit can be set."""
    if TAGGED is None:
        return None
    tag = int(f"{PREFIX}{next(serial) % 10**7:07d}")
    highest = resource.getrlimit(TAGGED)[1]
    return tag if highest == resource.RLIM_INFINITY or highest > tag else None


@contextmanager
def tagging(tag: int | None) -> Iterator[None]:
    """What is started inside carries the tag. This process bears it meanwhile, without effect.

    Only for the loop's thread: what other threads start just then would be tagged, too.
    """
    if tag is None or TAGGED is None:
        yield
        return
    own = resource.getrlimit(TAGGED)
    resource.setrlimit(TAGGED, (tag, own[1]))
    try:
        yield
    finally:
        resource.setrlimit(TAGGED, own)


def pass_on_signals() -> None:
    """Started in the background, this program ignores interrupts; what it starts must not.

    An ignored signal stays ignored in a new program, one with a handler does not.
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
    pass_on_signals()
    try:
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
    # Who waits for the process is ours to decide; this keeps Popen from doing so, too.
    process.returncode = 0
    return process.pid


def carriers(tag: int | None, leader: int, *, recent: bool = False) -> list[int]:
    """The processes of a command, unburied dead included; `recent` if it began just now."""
    return [pid for pid in candidates(leader, recent) if belongs(pid, tag, leader)]


def belongs(pid: int, tag: int | None, leader: int) -> bool:
    try:
        if tag is None or TAGGED is None:
            return os.getsid(pid) == leader
        return resource.prlimit(pid, TAGGED)[0] == tag
    except (OSError, ValueError):
        return False


def candidates(leader: int, recent: bool) -> Iterable[int]:
    """Processes that may descend from one: all, or just those with a number given out since."""
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
    """What still lives of a command whose shell has ended; the dead are buried.

    A process may fork and end while we look, and its child get a number that we are past: nothing
    lives only if nothing is found twice.
    """
    for _ in range(2):
        found = carriers(tag, leader, recent=recent)
        if alive := living(pid for pid in found if pid != leader):
            return alive
    return []


def living(pids: Iterable[int]) -> list[int]:
    """Those that are alive; the dead whose parent we have become are buried."""
    alive = []
    for pid in pids:
        if is_alive(pid):
            alive.append(pid)
        else:
            bury(pid)
    return alive


def descendants(roots: Iterable[int]) -> set[int]:
    """All that descend from the given processes by way of living parents."""
    children: dict[int, list[int]] = {}
    for pid in candidates(0, recent=False):
        children.setdefault(parent_of(pid), []).append(pid)
    found: set[int] = set()
    fresh = list(roots)
    while fresh:
        fresh = [child for pid in fresh for child in children.get(pid, ()) if child not in found]
        found.update(fresh)
    return found


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


def bury(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "?"


async def end(tag: int | None, leader: int) -> None:
    """Kill a command's process group and every descendant, until none is left, dead or alive.

    The dead come to us one by one: each when its own parent has died. Only the leader is left for
    its owner to bury, who wants to know how it died.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ENDING
    pause, rounds = 0.001, 0
    # What tags its own commands, such as an agent inside this one, is found as an ancestor of them.
    kin = descendants(carriers(tag, leader))
    send(-leader, signal.SIGKILL)
    while found := kin.union(carriers(tag, leader) or carriers(tag, leader)):
        alive = living(found - {leader})
        if leader in found and is_alive(leader):
            alive.append(leader)
        kin.intersection_update(alive)
        for pid in alive:
            send(pid, signal.SIGKILL)
        rounds = 0 if alive else rounds + 1
        if (found == {leader} and rounds > 1) or rounds > 10 or loop.time() > deadline:
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05) if alive else 0.002


def send(pid: int, number: int) -> None:
    """Signal a process, or a group by its negative number, if it is there and ours."""
    try:
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class ProcessTracker:
    """Started with the first command of this process, released with the last workspace."""

    def __init__(self) -> None:
        self._users = 0
        self._pid = 0
        self._pipe = -1

    def acquire(self) -> None:
        if self._users or TAGGED is None:
            self._users += 1
            return
        reading, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._pid = spawn(
                ["/bin/sh", "-c", GUARDIAN],
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
                streams=(reading, null, null),
                tag=None,
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


guardian = ProcessTracker()


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that somebody buries them."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
