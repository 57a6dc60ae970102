"""Starts commands inside the sandbox, by whichever means this machine has."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from trimtab.workspace import custody
from trimtab.workspace.sandbox import bubblewrap, landlock, seccomp
from trimtab.workspace.sandbox.policy import SandboxPolicy

Backend = Literal["bubblewrap", "landlock"]


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start, as `custody.spawn` takes it."""

    argv: Sequence[str]
    opener: Sequence[str] = ()
    """What runs first, outside the sandbox, and executes the rest."""
    cwd: str
    env: Mapping[str, str]
    streams: tuple[int, int, int]
    tag: int | None

    def spawn(self, prefix: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> int:
        return custody.spawn(
            [*self.opener, *prefix, *self.argv],
            cwd=self.cwd,
            env=self.env,
            streams=self.streams,
            tag=self.tag,
            pass_fds=pass_fds,
        )


class Confinement:
    """A policy and the backend that holds commands to it."""

    def __init__(self, backend: Backend, policy: SandboxPolicy, program: str = "") -> None:
        self.backend = backend
        self.policy = policy
        self._program = program
        self._running = 0
        self._left: list[str] = []
        self._left_folders: list[str] = []

    @property
    def reservation(self) -> str:
        """What this backend cannot hold, as a sentence; empty if it holds everything."""
        if self.backend == "bubblewrap":
            return ""
        return (
            "protected files inside the workspace can be written by commands; "
            "install bubblewrap for more"
        )

    def spawn(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it; gives its process id and what to call when it has ended. Raises `OSError`."""
        if self.backend == "bubblewrap":
            return self._wrap(start)
        return self._bind(start), lambda: None

    def _wrap(self, start: Start) -> tuple[int, Callable[[], None]]:
        """A namespace of its own.

        Not with --die-with-parent: what a command left running would be killed before it has had
        its moment to end (`> >(tee …)`). Custody finds it inside the namespace, too, and the
        guardian ends it should this process die.
        """
        frame = bubblewrap.frame(self.policy, self._program)
        families = (seccomp.UNIX, seccomp.INET, seccomp.INET6, seccomp.NETLINK)
        fds = [memory_file(seccomp.build_filter(families))]
        try:
            argv = [*frame.argv, "--seccomp", str(fds[0])]
            if frame.ignored and os.path.isfile(frame.exclude):
                fds.append(memory_file(extended(frame.exclude, frame.ignored)))
                argv += ["--ro-bind-data", str(fds[1]), frame.exclude]
            argv += ["--chdir", start.cwd, "--"]
            pid = start.spawn(argv, fds)
        finally:
            for fd in fds:
                os.close(fd)
        self._running += 1
        self._left += frame.left
        self._left_folders += frame.left_folders
        return pid, self._ended

    def _ended(self) -> None:
        """With the last command go the empty files; another's are still mounted on."""
        self._running -= 1
        if not self._running:
            bubblewrap.clean(self._left, self._left_folders)
            self._left, self._left_folders = [], []

    def _bind(self, start: Start) -> int:
        """From a thread that binds itself first: children inherit that, other threads do not."""
        families = [seccomp.NETLINK]
        if self.policy.network:
            families += [seccomp.INET, seccomp.INET6]
        program = seccomp.build_filter(families)
        outcome: list[int | BaseException] = []

        def work() -> None:
            try:
                landlock.restrict(self.policy, program)
                outcome.append(start.spawn())
            except BaseException as error:  # told to the caller, who waits
                outcome.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]


def memory_file(data: bytes) -> int:
    """A descriptor from which the data can be read."""
    fd = os.memfd_create("trimtab")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def extended(path: str, names: Sequence[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read() + "\n".join(["", *names, ""]).encode("utf-8", "surrogateescape")
