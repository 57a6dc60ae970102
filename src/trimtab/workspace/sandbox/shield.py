"""Keeps files that rules forbid to read or write from commands that may do anything else.

Unlike the fence it holds for approved commands. With the right to mount, or with bubblewrap, the
files are covered in a namespace of the command, or mounted read-only. Landlock can only allow: with
it, files are not readable either that a command creates beside a denied one, and nothing is kept
from being written.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal

from trimtab.workspace.sandbox import landlock, seccomp
from trimtab.workspace.sandbox.confinement import Start, spawn_bound
from trimtab.workspace.sandbox.fence_policy import list_except
from trimtab.workspace.sandbox.mounts import READ_ONLY, MountNamespace

ShieldBackend = Literal["mounts", "bubblewrap", "landlock"]
BACKENDS: Sequence[ShieldBackend] = ("mounts", "bubblewrap", "landlock")
READ_FILE, REFER = 0b100, 1 << 13
UNCOVERING = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_MODULE": 16,
    "CAP_SYS_RAWIO": 17,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
}
"""Root's capabilities to remove a cover, or to reach the file past it; containers lack them too."""
DROP_BOUNDING = 24


class Shield:
    """Starts commands that cannot read some paths, and cannot change others (`kept`)."""

    def __init__(
        self,
        backend: ShieldBackend,
        denied: Sequence[str],
        program: str = "",
        kept: Sequence[str] = (),
    ) -> None:
        self.backend = backend
        self.denied = tuple(denied)
        self.program = program
        self.kept = tuple(kept)

    def spawn(self, start: Start) -> tuple[int, Callable[[], None]]:
        """Start it; return its process id and a function to call at its end. Raises `OSError`."""
        if self.backend == "bubblewrap":
            return start.spawn([*self._frame(), "--chdir", start.cwd, "--"]), lambda: None
        bind = self._cover if self.backend == "mounts" else self._restrict
        return spawn_bound(bind, start.spawn), lambda: None

    @property
    def keeps_writes(self) -> bool:
        """Return True if it can keep existing files from being changed."""
        return self.backend != "landlock"

    def _paths(self) -> list[str]:
        """Return the denied paths that exist; a link is covered where it leads."""
        return find_existing(self.denied)

    def _frame(self) -> list[str]:
        argv = [self.program, "--dev-bind", "/", "/"]
        if os.geteuid() == 0:  # it keeps the others
            argv += [word for name in UNCOVERING for word in ("--cap-drop", name)]
        for path in find_existing(self.kept):
            argv += ["--ro-bind", path, path]
        for path in self._paths():
            if os.path.isdir(path):
                argv += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
            else:
                argv += ["--ro-bind", "/dev/null", path]
        return argv

    def _cover(self) -> None:
        """Cover the paths in a mount namespace of the calling thread."""
        namespace = MountNamespace()
        for path in find_existing(self.kept):
            namespace.bind(path, path)
            namespace.restrict(path, READ_ONLY)
        for path in self._paths():
            namespace.cover(path)
        give_up_uncovering()

    def _restrict(self) -> None:
        readable, _ = list_except(["/"], self._paths())
        rules = [("/", REFER), *((path, READ_FILE) for path in readable)]
        ruleset = landlock.build_ruleset(rules, landlock.find_version(), READ_FILE | REFER)
        try:
            landlock.enter_ruleset(ruleset)
        finally:
            os.close(ruleset)


def find_existing(paths: Sequence[str]) -> list[str]:
    """Return where paths lead that exist, a folder before what is in it."""
    real = dict.fromkeys(sorted(map(os.path.realpath, paths)))
    return [path for path in real if os.path.exists(path)]


def give_up_uncovering() -> None:
    """Keep what the calling thread starts from removing covers. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in UNCOVERING.values():
        landlock.check(libc.prctl(DROP_BOUNDING, number, 0, 0, 0))
    landlock.drop_capabilities(libc, ~sum(1 << number for number in UNCOVERING.values()))


@cache
def detect_shield(path: str, backends: Sequence[ShieldBackend] = BACKENDS) -> Shield | str:
    """Return a shield that works here, without paths yet, or why none does."""
    if not sys.platform.startswith("linux") or not seccomp.is_supported():
        return "there is no shield for this system"
    program = shutil.which("bwrap", path=path) or ""
    reasons = []
    for backend in backends:
        if backend == "bubblewrap" and not program:
            reasons.append("bubblewrap is not installed")
        elif backend == "landlock" and not landlock.find_version():
            reasons.append("the kernel has no Landlock")
        elif problem := find_leak(backend, program):
            reasons.append(f"{backend}: {problem}")
        else:
            return Shield(backend, (), program)
    return ", ".join(reasons)


def find_leak(backend: ShieldBackend, program: str) -> str:
    """Try to read a covered file; return how that succeeds, or an empty text if it fails."""
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        secret, other = os.path.join(folder, "secret"), os.path.join(folder, "other")
        for path in (secret, other):
            with open(path, "w", encoding="utf-8") as file:
                file.write("text\n")
        script = f"grep -q text {other} || exit 1; grep -qs text {secret} && exit 2; exit 0"
        null = os.open(os.devnull, os.O_RDWR)
        env: Mapping[str, str] = {"PATH": os.defpath}
        try:
            start = Start(
                argv=("/bin/sh", "-c", script),
                cwd=folder,
                env=env,
                streams=(null, null, null),
                tag=None,
            )
            pid, _ = Shield(backend, [secret], program).spawn(start)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        finally:
            os.close(null)
        return {0: "", 2: "a covered file can be read"}.get(code, "commands do not run")
