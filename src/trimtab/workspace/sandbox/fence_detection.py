"""Detects by trial which backend of the fence works on this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import msgspec

from trimtab.workspace.sandbox import landlock, seatbelt, seccomp
from trimtab.workspace.sandbox.confinement import Start
from trimtab.workspace.sandbox.fence import Fence, FenceBackend
from trimtab.workspace.sandbox.fence_policy import build_fence_policy

FENCE_NAMES = {
    "landlock": "Landlock",
    "bubblewrap": "bubblewrap",
    "seatbelt": "sandbox-exec",
}
"""The names of the backends, as people are told."""
BACKENDS: Sequence[FenceBackend] = ("landlock", "bubblewrap", "seatbelt")
TRIAL = """cat {inside}/text >/dev/null || exit 10
echo x >> "$TMPDIR/x" || exit 11
{{ echo x > {inside}/new; }} 2>/dev/null && exit 12
( : > {inside}/text ) 2>/dev/null && exit 13
cat {outside}/secret >/dev/null 2>&1 && exit 14
chmod 600 {inside}/text 2>/dev/null && exit 15
rm -f {inside}/spare 2>/dev/null
[ -e {inside}/spare ] || exit 17
mkdir {inside}/made 2>/dev/null && exit 12
{more}exit 0
"""
BY_PLACE = """{inside}/program 2>/dev/null && exit 16
kill -0 {pid} 2>/dev/null && exit 18
"""
"""Bubblewrap has no mounts from which nothing is executed (what runs there is confined, too), and
gives processes other numbers."""
ESCAPES = {
    10: "a command cannot read the workspace",
    11: "a command cannot write its temp folder",
    12: "a command can create files",
    13: "a command can truncate files",
    14: "a command can read files outside",
    15: "a command can change the mode of files",
    16: "a command can execute programs of the workspace",
    17: "a command can remove files",
    18: "a command can send signals to other processes",
}


class FoundFence(msgspec.Struct, frozen=True, kw_only=True):
    """The backend that works, if any; `reasons` say why the others do not."""

    backend: FenceBackend | None
    program: str = ""
    reasons: tuple[str, ...] = ()


known: dict[tuple[str, tuple[FenceBackend, ...]], FoundFence] = {}


def detect_fence(env: Mapping[str, str], backends: Sequence[FenceBackend] = BACKENDS) -> FoundFence:
    """Return the first of the backends that works here; detected once per process."""
    key = env.get("PATH", os.defpath), tuple(backends)
    if key not in known:
        known[key] = try_backends(*key)
    return known[key]


def try_backends(path: str, backends: Sequence[FenceBackend]) -> FoundFence:
    reasons: list[str] = []
    for backend in backends:
        program, problem = find_program(backend, path)
        problem = problem or find_escape(backend, program, path)
        if not problem:
            return FoundFence(backend=backend, program=program, reasons=tuple(reasons))
        if backend != "seatbelt" or sys.platform == "darwin" or len(backends) == 1:
            reasons.append(problem)
    return FoundFence(backend=None, reasons=tuple(reasons or ["the fence is switched off"]))


def find_program(backend: FenceBackend, path: str) -> tuple[str, str]:
    """Return the program of a backend, if it needs one, or why the backend cannot be tried."""
    if backend == "seatbelt":
        there = sys.platform == "darwin" and os.access(seatbelt.PROGRAM, os.X_OK)
        return seatbelt.PROGRAM, "" if there else "there is no sandbox-exec"
    if not sys.platform.startswith("linux") or not seccomp.is_supported():
        return "", f"there is no {backend} for this system"
    if backend == "landlock":
        return "", "" if landlock.find_version() else "the kernel has no Landlock"
    program = shutil.which("bwrap", path=path)
    return program or "", "" if program else "bubblewrap is not installed"


def find_escape(backend: FenceBackend, program: str, path: str) -> str:
    """Try to break out of a backend; return why that succeeds, or an empty text if it fails."""
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        inside, outside = make_trial(folder)
        policy = build_fence_policy(
            cwd=inside,
            readable=(inside,),
            untrusted=(inside, outside),
            denied=(),
            env={"PATH": path},
            temp=os.path.join(folder, "temp"),
        )
        more = "" if backend == "bubblewrap" else BY_PLACE.format(inside=inside, pid=os.getpid())
        script = TRIAL.format(inside=inside, outside=outside, more=more)
        errors = os.open(os.path.join(folder, "errors"), os.O_RDWR | os.O_CREAT, 0o600)
        null = os.open(os.devnull, os.O_RDWR)
        try:
            start = Start(
                argv=("/bin/sh", "-c", script),
                cwd=inside,
                env={"PATH": path},
                streams=(null, null, errors),
                tag=None,
            )
            fence = Fence(backend, policy, program)
            pid, ended = fence.spawn(start)
            _, status = os.waitpid(pid, 0)
            ended()
            fence.close()
            said = os.pread(errors, 500, 0).decode("utf-8", "replace").strip()
        except (OSError, subprocess.SubprocessError) as error:
            return f"{backend} does not work here ({error})"
        finally:
            os.close(errors)
            os.close(null)
        if status == 0:
            return ""
        code = os.waitstatus_to_exitcode(status)
        reason = ESCAPES.get(code, said or f"it ended with exit code {code}")
        return f"{backend} does not work here ({reason})"


def make_trial(folder: str) -> tuple[str, str]:
    """Make a folder that a command may read and one that it may not."""
    inside, outside = os.path.join(folder, "in"), os.path.join(folder, "out")
    for path in (inside, outside):
        os.mkdir(path)
    for path in (f"{inside}/text", f"{inside}/spare", f"{outside}/secret"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("text\n")
    program = os.path.join(inside, "program")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(program, 0o700)
    return inside, outside
