"""Measures programs from outside, so that neither the test worker nor its neighbours count."""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

WITNESS = str(Path(__file__).parents[1] / "bench" / "witness.py")
UNIT = 1 if sys.platform == "darwin" else 1024


class Spent(msgspec.Struct, frozen=True):
    """What a command printed and used: seconds of processor time, and bytes of memory at most."""

    out: str
    seconds: float
    memory: int


def measure(*command: str, **env: str) -> Spent:
    """Run a command that must succeed, with some variables more."""
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "figures")
        witness = [sys.executable, "-I", "-S", WITNESS, figures]
        done = subprocess.run(
            [*witness, *command],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        seconds, memory = Path(figures).read_text().split()
    return Spent(done.stdout, float(seconds), int(memory) * UNIT)


def children_seconds() -> float:
    """Return the processor time of all children that have ended, for the time one of them took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_memory() -> int:
    """Return the most memory that this process has used since it was executed, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) * 1024
