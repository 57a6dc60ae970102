"""Instruments: a fresh installation, a model server that notes arrival times, child processes."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trimtab.testing import ModelServer, Script

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".bench"
WITNESS = Path(__file__).with_name("witness.py")


class TimedServer(ModelServer):
    """Notes when each request arrived."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, keep=1)
        self.arrivals: list[float] = []

    async def _answer_call(self, exchange: Any, wire: Any) -> None:
        self.arrivals.append(time.monotonic())
        await super()._answer_call(exchange, wire)


class Spent:
    """What a child process took."""

    def __init__(self, started: float, arrivals: list[float], ended: float) -> None:
        self.to_first = (arrivals[0] - started) * 1000 if arrivals else 0.0
        self.wall = (ended - started) * 1000
        self.arrivals = arrivals
        self.exit_after_last = (ended - arrivals[-1]) * 1000 if arrivals else 0.0

    def per_turn(self) -> float:
        turns = len(self.arrivals) - 1
        return (self.arrivals[-1] - self.arrivals[0]) * 1000 / turns


def turns(count: int, call: dict[str, Any]) -> Script:
    """A model that asks for `call` `count` times and then is done."""
    return Script.of([{"tools": [call], "repeat": count}, {"text": "Done."}])


def install() -> Path:
    """The program in a virtual environment of its own, installed as a user would."""
    venv = WORK / "venv"
    shutil.rmtree(WORK, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*map(str, pip), str(ROOT)], check=True)
    return venv


def installed_mb(venv: Path) -> float:
    """Size of the program with all it needs, without pip and byte code."""
    folder = next((venv / "lib").glob("python*/site-packages"))
    skipped = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
    total = sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not str(path.relative_to(folder)).startswith(skipped)
    )
    extra = venv / "bin" / "rg"
    return (total + (extra.stat().st_size if extra.exists() else 0)) / 1e6


async def spawn(argv: list[str | Path], server: TimedServer | None = None, **env: str) -> Spent:
    """Run a child to its end; its environment is small and its home is its own."""
    home = tempfile.mkdtemp(prefix="trimtab-bench-")
    full = {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "COPILOT_HOME": home,
        "LANG": "C.UTF-8",
        **env,
    }
    if server is not None:
        server.arrivals.clear()
        full |= {
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_PROVIDER_API_KEY": "bench-key-0123456789",
            "COPILOT_MODEL": "scripted",
        }
    started = time.monotonic()
    pid = os.posix_spawn(
        str(argv[0]),
        [str(word) for word in argv],
        full,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, f"{home}/stderr", os.O_WRONLY | os.O_CREAT, 0o600),
        ],
    )
    ended = asyncio.get_running_loop().create_future()
    pidfd = os.pidfd_open(pid)
    asyncio.get_running_loop().add_reader(pidfd, ended.set_result, None)
    await ended
    finished = time.monotonic()
    asyncio.get_running_loop().remove_reader(pidfd)
    os.close(pidfd)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{argv} failed: {Path(home, 'stderr').read_text()}")
    arrivals = list(server.arrivals) if server is not None else []
    shutil.rmtree(home, ignore_errors=True)
    return Spent(started, arrivals, finished)


async def peak_mb(argv: list[str | Path], server: TimedServer) -> float:
    """The most memory a child has, in MB; in a run of its own, through a small process."""
    with tempfile.NamedTemporaryFile("r", prefix="trimtab-bench-") as figures:
        await spawn([sys.executable, "-I", "-S", WITNESS, figures.name, *argv], server)
        return int(figures.read().split()[1]) / 1024
