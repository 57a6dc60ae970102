"""What a sandbox adds to the start of a command: without network, and with a list of hosts."""

import os
import tempfile
import time
from pathlib import Path

from toolkit import Bench, open_bench
from trimtab.workspace.sandbox.confinement import Confinement
from trimtab.workspace.sandbox.detection import detect
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
    return least


async def time_one(bench: Bench) -> float:
    began = time.perf_counter()
    await bench.bash("true")
    return (time.perf_counter() - began) * 1000
