"""Detects by trial which sandbox backend works on this machine."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping

import msgspec

from trimtab.workspace.sandbox import landlock, seccomp
from trimtab.workspace.sandbox.confinement import Backend, Confinement, Start
from trimtab.workspace.sandbox.policy import SandboxPolicy

PATIENCE = 5.0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The best backend that works, if any; `reasons` say why better ones do not."""

    backend: Backend | None
    program: str = ""
    reasons: tuple[str, ...] = ()


known: dict[str, Found] = {}


def detect(env: Mapping[str, str]) -> Found:
    """Return the backend that works here; detected once per process."""
    path = env.get("PATH", os.defpath)
    if path not in known:
        known[path] = try_all(path)
    return known[path]


def try_all(path: str) -> Found:
    if not sys.platform.startswith("linux") or not seccomp.is_supported():
        return Found(backend=None, reasons=("there is no sandbox for this system",))
    reasons = []
    program = shutil.which("bwrap", path=path)
    if program is None:
        reasons.append("bubblewrap is not installed")
    elif problem := find_problem("bubblewrap", program):
        reasons.append(f"bubblewrap does not work here ({problem})")
    else:
        return Found(backend="bubblewrap", program=program)
    if not landlock.find_version():
        reasons.append("the kernel has no Landlock")
    elif problem := find_problem("landlock", ""):
        reasons.append(f"Landlock does not work here ({problem})")
    else:
        return Found(backend="landlock", reasons=tuple(reasons))
    return Found(backend=None, reasons=tuple(reasons))


def find_problem(backend: Backend, program: str) -> str:
    """Try to break out of a backend; return why that succeeds, or an empty text if it fails."""
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        inside, outside = os.path.join(folder, "in"), os.path.join(folder, "out")
        os.mkdir(inside)
        policy = SandboxPolicy(roots=(inside,))
        if backend == "bubblewrap":
            policy = SandboxPolicy(roots=(inside,), read_only=(folder,), temp=folder)
            policy = msgspec.structs.replace(policy, session=(inside,))
        script = f"echo x > {inside}/x && ! echo x 2>/dev/null > {outside}"
        errors = os.memfd_create("trimtab")
        null = os.open(os.devnull, os.O_RDWR)
        try:
            start = Start(
                argv=("/bin/sh", "-c", script),
                cwd=inside,
                env={"PATH": os.defpath},
                streams=(null, null, errors),
                tag=None,
            )
            pid, ended = Confinement(backend, policy, program).spawn(start)
            _, status = os.waitpid(pid, 0)
            ended()
            said = os.pread(errors, 500, 0).decode("utf-8", "replace").strip()
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        finally:
            os.close(errors)
            os.close(null)
        if os.path.exists(outside):
            return "it holds nothing back"
        return "" if status == 0 else said or f"it ended with status {status}"
