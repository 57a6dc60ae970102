"""The fence: runs commands that nobody approved, so that they can change nothing.

Analysis decides which commands are worth trying without a question; the kernel makes sure that
they do no harm. A fenced command reads what the policy allows, executes programs of the system and
of the person's tools, writes to a temp folder of its own, and has no network.
"""

import os
import resource
import signal
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from trimtab.workspace import process_tracking
from trimtab.workspace.sandbox import fence_bubblewrap, landlock, seatbelt, seccomp
from trimtab.workspace.sandbox.confinement import Start, memory_file, spawn_bound
from trimtab.workspace.sandbox.fence_policy import (
    FencePolicy,
    list_except,
    read_only_environment,
)
from trimtab.workspace.sandbox.fence_watch import Totals, Watch, end_first
from trimtab.workspace.sandbox.prepared_mounts import PreparedMounts
from trimtab.workspace.sandbox.temp_folder import is_empty, remove_folder

FenceBackend = Literal["landlock", "bubblewrap", "seatbelt"]

MAX_BYTES = 4 << 30
"""Bytes of private memory for each process."""
MAX_FILE = 256 << 20
"""Bytes of a file in the temp folder."""
MAX_CPU_SECONDS = 300
OWN_CAPABILITIES = 0b110
"""Root still reads files of other users: DAC_OVERRIDE and DAC_READ_SEARCH."""
READ, EXECUTE, READ_DIRECTORY = 0b1100, 0b1101, 0b1000
DEVICE = 0b110 | 1 << 14 | 1 << 15
"""Read, write, truncate and control a device."""
TEMP = landlock.ALL & ~(1 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 15)
"""Everything but to execute, to make devices or sockets, and to control devices."""
CHANGES = TEMP & ~READ
"""Rights of a command in its own temp folder, which it does not have in those of others."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
WITH_EFFECTS = ("/dev", "/sys/kernel/debug", "/sys/kernel/tracing")
"""Not opened though everything may be read: disks hold denied files, terminals belong to people,
and what reads a record of the kernel takes it from whoever waits for it."""

LIMITS = (
    'ulimit -c "$1"; ulimit -f "$(($2 / 512))"; ulimit -t "$3"; '
    'ulimit -d "$(($4 / 1024))" 2>/dev/null; '
    '{ ulimit -u "$5" || ulimit -p "$5"; } 2>/dev/null; shift 5; exec "$@"'
)
"""A script for /bin/sh; bash and dash have different letters for the number of processes."""


class Fence:
    """Starts commands behind the fence."""

    def __init__(
        self,
        backend: FenceBackend,
        policy: FencePolicy,
        program: str = "",
        version: int | None = None,
        totals: Totals | None = None,
    ) -> None:
        """`version` is that of Landlock to be used, at most the kernel's."""
        self.backend = backend
        self.policy = policy
        self._program = program
        self._totals = totals or Totals()
        self._version = landlock.find_version() if version is None else version
        self._ruleset = -1
        self._listed: dict[str, int] = {}
        self._filter = b""
        self._mounts = PreparedMounts(policy)
        self._spare: list[str] = []

    def spawn(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it; return its process id and a function to call at its end. Raises `OSError`."""
        temp = self._take_folder()
        start = msgspec.structs.replace(start, env=read_only_environment(start.env, temp))
        try:
            pid = self._spawn(start, temp)
        except BaseException:
            remove_folder(temp)
            raise
        watch = Watch(pid, start, temp, self._totals)

        def ended() -> None:
            watch.stop()
            self._put_back(temp)

        return pid, ended

    def _take_folder(self) -> str:
        """Return an empty temp folder. Raises `OSError`."""
        while self._spare:
            temp = self._spare.pop()
            if is_empty(temp):
                return temp
        os.makedirs(self.policy.temp, mode=0o700, exist_ok=True)
        return tempfile.mkdtemp(dir=self.policy.temp)

    def _put_back(self, temp: str) -> None:
        """Keep an empty folder for the next command: to remove a mount point takes a while."""
        if is_empty(temp):
            self._spare.append(temp)
        else:
            remove_folder(temp)

    def _spawn(self, start: Start, temp: str) -> int:
        if self.backend == "bubblewrap":
            return self._wrap(start, temp)
        start = msgspec.structs.replace(start, argv=[*limit_prefix(), *start.argv])
        if self.backend == "seatbelt":
            profile = seatbelt.build_profile(self.policy, temp, start.opener[-1:])
            return start.spawn([self._program, "-p", profile])
        pid = self._bind(start, temp)
        end_first(pid)
        return pid

    def _bind(self, start: Start, temp: str) -> int:
        if start.opener:  # a terminal of its own, which no other command may open
            ruleset = landlock.build_ruleset(self._find_rules(start.opener[-1:]), self._version)
        else:
            ruleset = self._keep_ruleset()
        own = landlock.build_ruleset([(temp, TEMP), ("/dev", DEVICE)], self._version, CHANGES)

        def confine() -> None:
            landlock.enter_ruleset(own)
            landlock.enter(ruleset, self._build_filter(), OWN_CAPABILITIES)

        try:
            # Behind the filter, nobody sets a tag.
            with process_tracking.tagging(start.tag):
                return spawn_bound(confine, msgspec.structs.replace(start, tag=None).spawn)
        finally:
            os.close(own)
            if start.opener:
                os.close(ruleset)

    def _keep_ruleset(self) -> int:
        """Return the ruleset, built anew if a folder has changed whose entries it names."""
        if self._ruleset >= 0 and all(
            stamp(folder) == seen for folder, seen in self._listed.items()
        ):
            return self._ruleset
        self.close()
        self._ruleset = landlock.build_ruleset(self._find_rules(()), self._version)
        return self._ruleset

    def _find_rules(self, terminals: Sequence[str]) -> list[tuple[str, int]]:
        policy = self.policy
        readable, listed = list_except(policy.readable, (*policy.denied, *WITH_EFFECTS))
        inside = [
            root
            for root in policy.untrusted
            if any(root.startswith(f"{folder}/") for folder in policy.programs)
        ]
        programs, more = list_except(policy.programs, (*policy.denied, *inside))
        self._listed = {folder: stamp(folder) for folder in (*listed, *more)}
        rules = [(path, READ) for path in readable]
        rules += [(path, EXECUTE) for path in programs]
        rules += [(path, DEVICE) for path in (*(f"/dev/{name}" for name in DEVICES), *terminals)]
        rules += [(path, READ_DIRECTORY) for path in ("/dev", *listed)]
        return [*rules, (policy.temp, TEMP)]

    def _build_filter(self) -> bytes:
        if not self._filter:
            bound = self.backend == "landlock"
            self._filter = seccomp.build_fence_filter(
                refuse_signals=bound and self._version < landlock.SCOPES_SINCE,
                refuse_truncation=bound and self._version < landlock.TRUNCATE_SINCE,
            )
        return self._filter

    def _wrap(self, start: Start, temp: str) -> int:
        """Start bubblewrap, as root with mounts that are there already.

        A command with a terminal gets its own mounts, for which its terminal can still be opened.
        """
        if self._mounts.serves(self._program) and not start.opener:
            with suppress(OSError):  # not in a container without that right
                self._mounts.prepare()
                argv = self._mounts.list_arguments()
                return spawn_bound(
                    lambda: self._mounts.enter(temp), lambda: self._start_wrapped(start, argv)
                )
        return self._start_wrapped(start, fence_bubblewrap.list_arguments(self.policy, temp))

    def _start_wrapped(self, start: Start, argv: Sequence[str]) -> int:
        """Start bubblewrap, limit it, and only then give it its arguments.

        It reads them from a pipe before it starts anything, so whatever it starts is limited, too.
        """
        filter_fd = memory_file(self._build_filter())
        reading, writing = os.pipe()
        try:
            argv = [*argv, "--seccomp", str(filter_fd), "--chdir", start.cwd]
            prefix = [self._program, "--args", str(reading), "--"]
            limited = may_limit(self._program)
            pid = start.spawn([*prefix, *(() if limited else limit_prefix())], [reading, filter_fd])
            end_first(pid)
            try:
                if limited:
                    limit(pid)
                os.write(writing, b"".join(os.fsencode(word) + b"\0" for word in argv))
            except OSError:
                process_tracking.send(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
            return pid
        finally:
            for fd in (filter_fd, reading, writing):
                os.close(fd)

    def close(self) -> None:
        """Release ruleset, mounts and folders. Commands that are running stay fenced."""
        self._mounts.close()
        while self._spare:
            remove_folder(self._spare.pop())
        if self._ruleset >= 0:
            os.close(self._ruleset)
            self._ruleset = -1

    def remove_temp(self) -> None:
        remove_folder(self.policy.temp)


def list_limits() -> dict[int, int]:
    """Return the limits of a command by their kind."""
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: MAX_FILE,
        resource.RLIMIT_CPU: MAX_CPU_SECONDS,
        resource.RLIMIT_DATA: MAX_BYTES,
        resource.RLIMIT_NPROC: find_process_limit(),
    }


def limit_prefix() -> list[str]:
    """Return a program that sets the limits of a command and executes it."""
    return ["/bin/sh", "-c", LIMITS, "sh", *map(str, list_limits().values())]


def may_limit(program: str) -> bool:
    """Return True if a process that runs a program can be limited by whoever started it."""
    with suppress(OSError):  # to start it says what is wrong with it
        return os.geteuid() == 0 or not os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID)
    return True


def limit(pid: int) -> None:
    """Set the limits of a process that waits. Raises `OSError`."""
    for kind, most in list_limits().items():
        _, hard = resource.prlimit(pid, kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, kind, (allowed, allowed))


def find_process_limit() -> int:
    """Return the highest number of tasks this user may have while the command runs.

    The kernel counts all tasks of a user; there are at most as many as on the whole machine. It
    does not hold root to such a limit, so the number is watched, too.
    """
    return (count_tasks() or 4096) + Totals().processes


def count_tasks() -> int:
    """Return the number of processes and threads on this machine, 0 if it is not known."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def stamp(folder: str) -> int:
    """Return the time at which entries were last added to or removed from a folder."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
