"""What the fence and the sandbox add to the start of a command, for each backend."""

import os
import tempfile
import time
from pathlib import Path

from toolkit import Bench, open_bench
from trimtab.contracts.workspace import Command
from trimtab.workspace.sandbox.confinement import Confinement
from trimtab.workspace.sandbox.detection import detect
from trimtab.workspace.sandbox.fence import Fence
from trimtab.workspace.sandbox.fence_detection import BACKENDS, detect_fence
from trimtab.workspace.sandbox.fence_policy import FencePolicy, build_fence_policy
from trimtab.workspace.sandbox.hosts import build_list
from trimtab.workspace.sandbox.policy import SandboxPolicy

ROUNDS = 30


async def measure_sandbox() -> dict[str, float]:
    """Milliseconds of `true`, the least of many: in no sandbox, in one, in one with hosts."""
    found = detect(os.environ)
    if found.backend is None:
        return {}
    async with open_bench(Path(tempfile.mkdtemp(prefix="trimtab-sandbox-"))) as bench:
        await bench.bash("git init -q")
        os.makedirs(bench.files, exist_ok=True)
        policy = SandboxPolicy(roots=(str(bench.root),), session=(bench.files,))
        confinements: dict[str, Confinement | None] = {
            "bare": None,
            "sandboxed": Confinement(found.backend, policy, found.program),
        }
        if found.backend == "bubblewrap":
            listed = SandboxPolicy(
                roots=policy.roots, session=policy.session, hosts=build_list(["example.com"])
            )
            confinements["with hosts"] = Confinement(found.backend, listed, found.program)
        least = dict.fromkeys(confinements, float("inf"))
        for _ in range(ROUNDS):
            for name, confinement in confinements.items():
                bench.workspace.shells.confinement = confinement
                least[name] = min(least[name], await time_one(bench))
        bench.workspace.shells.confinement = None
        for backend in BACKENDS:
            fence = detect_fence(os.environ, (backend,))
            if fence.backend is not None:
                bench.workspace.shells.fence = Fence(backend, build_policy(bench), fence.program)
                times = [await time_one(bench, fenced=True) for _ in range(ROUNDS)]
                least[f"fence {backend}"] = min(times)
    return least


def build_policy(bench: Bench) -> FencePolicy:
    return build_fence_policy(
        cwd=str(bench.root),
        readable=(str(bench.root),),
        untrusted=(str(bench.root),),
        denied=(),
        env=os.environ,
        temp=f"{bench.files}/temp",
    )


async def time_one(bench: Bench, *, fenced: bool = False) -> float:
    command = Command(text="true", fenced=fenced)
    began = time.perf_counter()
    await bench.workspace.shells.execute(command, wait=30, limit=1000)
    return (time.perf_counter() - began) * 1000
