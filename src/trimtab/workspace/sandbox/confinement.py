"""Starts commands in the sandbox, with the backend that works on this machine."""

import errno
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Literal

import msgspec

from trimtab.workspace import process_tracking
from trimtab.workspace.sandbox import bubblewrap, landlock, seccomp
from trimtab.workspace.sandbox.hosts import HostList
from trimtab.workspace.sandbox.policy import SandboxPolicy

if TYPE_CHECKING:
    from trimtab.workspace.sandbox.bridge import Bridge

Backend = Literal["bubblewrap", "landlock"]
SAID_AT_MOST = 50
"""The number of refused hosts that are reported to a command."""
REMEDY = "install bubblewrap, or run with --no-sandbox"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A connection that was refused to a command."""

    host: str
    port: int
    reason: str
    call_id: str


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start, as `process_tracking.spawn` takes it."""

    argv: Sequence[str]
    opener: Sequence[str] = ()
    """The program that runs first, outside the sandbox, and executes the rest."""
    cwd: str
    env: Mapping[str, str]
    streams: tuple[int, int, int]
    tag: int | None
    call_id: str = ""
    say: Callable[[str], None] | None = None
    """Adds a line to the command's output; None for programs without a network."""

    def spawn(self, prefix: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> int:
        return process_tracking.spawn(
            [*self.opener, *prefix, *self.argv],
            cwd=self.cwd,
            env=self.env,
            streams=self.streams,
            tag=self.tag,
            pass_fds=pass_fds,
        )


class Confinement:
    """A policy and the backend that enforces it."""

    def __init__(self, backend: Backend, policy: SandboxPolicy, program: str = "") -> None:
        self.backend = backend
        self.policy = policy
        self.program = program
        self._roots = policy.roots
        self._running = 0
        self._left: list[str] = []
        self._left_folders: list[str] = []
        self._bridges: set[Bridge] = set()
        self.on_refusal: Callable[[Refusal], None] = lambda _: None
        self.ask_host: Callable[[str, int, str], Awaitable[bool]] | None = None
        """Asks whether the command of a call may reach a host and port that are on no list."""

    @property
    def reservation(self) -> str:
        """A sentence about what this backend cannot enforce; empty if it enforces everything."""
        if self.backend == "bubblewrap":
            return ""
        return (
            "protected files inside the workspace can be written by commands; "
            "install bubblewrap for more"
        )

    def deny(self, paths: Sequence[str]) -> None:
        """Keep these paths from the commands that start from now on, too."""
        denied = tuple(dict.fromkeys((*self.policy.denied, *paths)))
        if denied != self.policy.denied:
            self.policy = msgspec.structs.replace(self.policy, denied=denied)

    def let_write(self, folders: Sequence[str]) -> None:
        """Let commands that start from now on write to these folders, and no longer to others."""
        roots = tuple(dict.fromkeys((*self._roots, *folders)))
        if roots != self.policy.roots:
            self.policy = msgspec.structs.replace(self.policy, roots=roots)

    def keep(self, paths: Sequence[str]) -> None:
        """Keep the commands that start from now on from changing these paths, too."""
        kept = tuple(dict.fromkeys((*self.policy.read_only, *paths)))
        if kept != self.policy.read_only:
            self.policy = msgspec.structs.replace(self.policy, read_only=kept)

    def spawn(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it; return its process id and a function to call at its end. Raises `OSError`."""
        if self.policy.variables:
            start = msgspec.structs.replace(start, env={**start.env, **self.policy.variables})
        if self.backend == "bubblewrap":
            return self._wrap(start)
        return self._bind(start), lambda: None

    def _wrap(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it in a namespace of its own.

        Without --die-with-parent, which would kill processes a command left running before they
        could exit (`> >(tee …)`). Process tracking finds them inside the namespace too, and the
        guardian kills them if this process dies.
        """
        if not os.access(self.program, os.X_OK):  # not found, or removed since
            reason = "bubblewrap, which the sandbox needs, is not installed"
            raise FileNotFoundError(errno.ENOENT, f"{reason}; {REMEDY}", self.program)
        frame = bubblewrap.frame(self.policy, self.program)
        families = (seccomp.UNIX, seccomp.INET, seccomp.INET6, seccomp.NETLINK)
        fds = [memory_file(seccomp.build_filter(families))]
        try:
            tail = ["--seccomp", str(fds[0])]
            if frame.ignored and os.path.isfile(frame.exclude):
                fds.append(memory_file(extended(frame.exclude, frame.ignored)))
                tail += ["--ro-bind-data", str(fds[1]), frame.exclude]
            frame.tail += [*tail, "--chdir", start.cwd, "--"]
            pid, bridge = self._start(start, frame, fds)
        finally:
            for fd in fds:
                os.close(fd)
        self._running += 1
        self._left += frame.left
        self._left_folders += frame.left_folders
        return pid, lambda: self._ended(bridge)

    def _start(
        self, start: Start, frame: bubblewrap.Frame, fds: Sequence[int]
    ) -> "tuple[int, Bridge | None]":
        """Connect the command to the proxy, which also says what it refuses."""
        hosts, ask_host = self.policy.hosts or HostList(()), self.ask_host
        if self.policy.network or start.say is None:
            return spawn_framed(start, frame, fds), None
        from trimtab.workspace.sandbox.bridge import Bridge, proxy_variables

        def ask(host: str, port: int) -> Awaitable[bool]:
            assert ask_host is not None
            return ask_host(host, port, start.call_id)

        bridge = Bridge(hosts, self._report(start, start.say), ask if ask_host else None)
        try:
            start = msgspec.structs.replace(start, env={**start.env, **proxy_variables(hosts)})
            frame.tail += bridge.prefix
            pid = spawn_framed(start, frame, [*fds, bridge.descriptor])
        except BaseException:
            bridge.close()
            raise
        bridge.open()
        self._bridges.add(bridge)
        return pid, bridge

    def _report(self, start: Start, say: Callable[[str], None]) -> Callable[[str, int, str], None]:
        """Report each refused host once."""
        told: set[tuple[str, int]] = set()

        def report(host: str, port: int, reason: str) -> None:
            if (host, port) in told or len(told) >= SAID_AT_MOST:
                return
            told.add((host, port))
            say(f"<the sandbox refused a connection to {host}:{port}: {reason}>\n")
            self.on_refusal(Refusal(host=host, port=port, reason=reason, call_id=start.call_id))

        return report

    def close(self) -> None:
        """Close every connection: running commands are no longer watched."""
        for bridge in self._bridges:
            bridge.close()
        self._bridges.clear()

    def _ended(self, bridge: "Bridge | None") -> None:
        """Remove the mount points after the last command; until then they are in use."""
        if bridge is not None:
            bridge.close()
            self._bridges.discard(bridge)
        self._running -= 1
        if not self._running:
            bubblewrap.clean(self._left, self._left_folders)
            self._left, self._left_folders = [], []

    def _bind(self, start: Start) -> int:
        families = [seccomp.NETLINK]
        if self.policy.network:
            families += [seccomp.INET, seccomp.INET6]
        program = seccomp.build_filter(families)

        def bind() -> None:
            try:
                landlock.restrict(self.policy, program)
            except OSError as error:
                reason = f"Landlock, which the sandbox needs, failed ({error.strerror})"
                raise OSError(error.errno, f"{reason}; {REMEDY}") from error

        return spawn_bound(bind, start.spawn)


def spawn_framed(start: Start, frame: bubblewrap.Frame, fds: Sequence[int]) -> int:
    """Start bubblewrap. As root, mount the covers ourselves: bubblewrap takes longer for each."""
    if os.geteuid() == 0:
        with suppress(OSError):  # not in a container without that right
            return spawn_bound(
                lambda: bubblewrap.mount_covers(frame.covers),
                lambda: start.spawn(frame.list_arguments(mounted=True), fds),
            )
    return start.spawn(frame.list_arguments(), fds)


def spawn_bound(bind: Callable[[], None], spawn: Callable[[], int]) -> int:
    """Start from a thread that confines itself first: only its children inherit that."""
    import_module("trimtab.workspace.start_failure")  # which the thread could not read any more

    def work() -> int:
        bind()
        return spawn()

    return run_apart(work)


def run_apart(work: Callable[[], int]) -> int:
    """Run a function in a thread of its own, which it may change for good."""
    outcome: list[int | BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # passed to the caller, who waits
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def memory_file(data: bytes) -> int:
    """Return a descriptor from which the data can be read."""
    fd = os.memfd_create("trimtab")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def extended(path: str, names: Sequence[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read() + "\n".join(["", *names, ""]).encode("utf-8", "surrogateescape")
