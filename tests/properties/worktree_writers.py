"""Sessions that write side by side in worktrees of one repository, killed at random moments.

Run as a program with the number of writers: `python tests/properties/worktree_writers.py 16`.
"""

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clikit import Cli, bash, serving
from gitkit import git

ROUNDS = 3


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a checkout, git's own left out."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


async def write(cli: Cli, number: int, rng: random.Random) -> None:
    """One writer; it may be killed at any moment."""
    name = f"writer{number}"
    calls = [
        {"name": "create", "arguments": {"path": f"{name}.txt", "file_text": name}},
        bash(f"echo {name} >> shared.txt; mkdir -p out; echo {name} > out/{name}"),
        {"name": "edit", "arguments": {"path": "shared.txt", "old_str": "base", "new_str": name}},
    ]
    async with serving([*({"tools": [call]} for call in calls), {"text": "Done."}]) as server:
        env = {**cli.env, "COPILOT_PROVIDER_BASE_URL": server.base_url}
        process = await cli.start("-p", name, "--allow-all", f"--worktree={name}", env=env)
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random() * 0.6)
            if process.returncode is None:
                process.kill()
        await process.communicate()


async def check(writers: int, seed: int, folder: Path) -> None:
    """The person's checkout stays as it is, and no writer's file appears with another."""
    rng = random.Random(seed)
    cli = Cli(folder)
    cli.env |= {"COPILOT_PROVIDER_API_KEY": "test-key-0123456789", "COPILOT_MODEL": "scripted"}
    (cli.cwd / "shared.txt").write_text("base\n")
    git(cli.cwd, "init", "-q", "-b", "main")
    git(cli.cwd, "add", "-A")
    git(cli.cwd, "commit", "-qm", "base")
    (cli.cwd / "mine.txt").write_text("not committed")
    before, head = contents(cli.cwd), git(cli.cwd, "rev-parse", "main")
    outside = {path.name for path in folder.iterdir()}
    await asyncio.gather(*(write(cli, number, rng) for number in range(writers)))
    assert contents(cli.cwd) == before
    assert git(cli.cwd, "rev-parse", "main") == head
    assert git(cli.cwd, "status", "--short") == "?? mine.txt\n"
    assert {path.name for path in folder.iterdir()} <= outside | {"project.worktrees"}
    for root in (folder / "project.worktrees").iterdir():
        names = {path.split("/")[-1].removesuffix(".txt") for path in contents(root)}
        assert names <= {"shared", root.name}, (root.name, names)
        text = (root / "shared.txt").read_text() if (root / "shared.txt").exists() else ""
        assert set(text.split()) <= {"base", root.name}, (root.name, text)


async def main(writers: int) -> None:
    for seed in range(ROUNDS):
        await check(writers, seed, Path(tempfile.mkdtemp(prefix="trimtab-writers-")))
    print(f"{writers} writers, {ROUNDS} rounds with kills: 0 writes outside their root")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
