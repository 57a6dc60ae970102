"""The same prompt given to another agent in the same run, if `make foreign` has fetched it."""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import ROOT, Spent, TimedServer, spawn, turns

CODEX = ROOT / ".foreign" / "codex" / "node_modules"
ROUNDS = 15
FIRST = 0.70
"""The part of Codex's time to its first request that ours may take."""

Row = Callable[..., None]


def find_codex() -> Path | None:
    """Return Codex's own binary: the script beside it would start Node first."""
    return next(CODEX.glob("@openai/codex-*/vendor/*/bin/codex"), None)


def build_arguments(server: TimedServer, project: Path) -> list[str]:
    provider = {
        "name": '"scripted"',
        "base_url": f'"{server.base_url}"',
        "env_key": '"COPILOT_PROVIDER_API_KEY"',
        "wire_api": '"responses"',
    }
    settings = ["model_provider=scripted", "model=scripted"]
    settings += [f"model_providers.scripted.{name}={value}" for name, value in provider.items()]
    flags = [word for setting in settings for word in ("-c", setting)]
    sandbox = "--dangerously-bypass-approvals-and-sandbox"
    return ["exec", "--json", sandbox, "--skip-git-repo-check", "-C", str(project), *flags]


async def measure_codex(trimtab: Path, project: Path, server: TimedServer, row: Row) -> None:
    """Time from exec to the first request, ours and Codex's in turn."""
    codex = find_codex()
    if codex is None:
        print("Codex has not been fetched: make foreign")
        return
    prompt = "Work until you are done."
    flags = ("--output-format", "json", "--allow-all")
    ours: list[str | Path] = [trimtab, "-C", project, "-p", prompt, *flags]
    theirs: list[str | Path] = [codex, *build_arguments(server, project), prompt]
    runs: tuple[list[Spent], list[Spent]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-codex-") as home:
        for _ in range(ROUNDS):
            for argv, spent in zip((ours, theirs), runs, strict=True):
                server.load(turns(0, {"name": "bash"}))
                spent.append(await spawn(argv, server, CODEX_HOME=home))
    first = [[spent.to_first for spent in run] for run in runs]
    row("exec to first request, ms (Codex as floor)", min(first[0]), min(first[1]))
    median, theirs_median = map(statistics.median, first)
    row("  median, ms", median, theirs_median)
    row("  median as a part of Codex's", median / theirs_median, limit=FIRST)
