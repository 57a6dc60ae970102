"""Everyday commands of real projects, bare and in the sandbox with `autoAllow`: what breaks.

    python bench/projects.py [PROJECT …]

Fetches the projects from PyPI, runs the same commands twice through the `bash` tool, and prints
the commands that end differently, with the questions that were asked on the way. A person who is
asked allows every host, and never lets a command run outside the sandbox.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from trimtab.contracts.options import PermissionOptions
from trimtab.contracts.permission import Answer
from trimtab.testing.playing import Played, play

PROJECTS = ("click", "attrs", "itsdangerous", "markupsafe", "flask", "ujson", "requests", "tomli")
SET_UP = (
    "python3 -m venv .venv",
    ".venv/bin/pip install -q -e .",
    ".venv/bin/pip install -q pytest hypothesis freezegun build ruff mypy coverage",
)
WORK = (
    "ls -la && git status --short",
    "git log --oneline | head -3",
    ".venv/bin/python -m pytest -q -x",
    ".venv/bin/python -m coverage run -m pytest -q -x",
    ".venv/bin/ruff check . --exit-zero -q",
    ".venv/bin/ruff format -q . && git diff --stat | tail -1 && git checkout -q .",
    ".venv/bin/mypy src --no-error-summary > types.txt; tail -1 types.txt; rm types.txt",
    ".venv/bin/python -m build --sdist -q 2>&1 | tail -2; ls dist",
    ".venv/bin/python -m build --wheel -q",
    ".venv/bin/pip list | wc -l",
    "find . -name '*.py' -not -path './.venv/*' | xargs wc -l | tail -1",
    "grep -rn 'def ' --include=*.py src | wc -l",
    "mkdir -p scratch && cp pyproject.toml scratch/ && sed -i 's/a/b/' scratch/pyproject.toml",
    "tar czf scratch/copy.tgz pyproject.toml && tar tzf scratch/copy.tgz",
    "git checkout -q -b topic && touch scratch/new && git add scratch",
    "git -c user.name=a -c user.email=a@example.com commit -qm work && git switch -q -",
)
SERVER = (
    "python3 -m http.server 8123 --bind 127.0.0.1 & sleep 1; curl -sf http://127.0.0.1:8123/ >x"
)


async def main(names: list[str]) -> None:
    total = broken = 0
    for name in names:
        source = fetch(name)
        commands = (*SET_UP, *WORK, SERVER)
        bare, _ = await run(source, commands, sandboxed=False)
        held, asked = await run(source, commands, sandboxed=True)
        rows = [row for row in zip(commands, bare, held, strict=True) if row[1] != row[2]]
        total, broken = total + len(commands), broken + len(rows)
        failed = [row[0] for row in zip(commands, bare, strict=True) if row[1]]
        print(
            f"{name}: {len(rows)} of {len(commands)} end differently; asked: {asked}; fail anyway: {failed}",
            flush=True,
        )
        for command, before, after in rows:
            print(f"  {before} -> {after}  {command}", flush=True)
    print(f"all: {broken} of {total} end differently")


def fetch(name: str) -> Path:
    """Unpack the source distribution of a package."""
    folder = Path(tempfile.mkdtemp(prefix="trimtab-project-"))
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "-d", str(folder), name], check=True, stderr=subprocess.DEVNULL)
    (archive,) = folder.iterdir()
    (folder / "source").mkdir()
    unpack = ["tar", "--no-same-owner", "-xf", str(archive), "-C", str(folder / "source")]
    subprocess.run(unpack, check=True)
    (source,) = (folder / "source").iterdir()
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "start")
    for words in (("init", "-q"), ("add", "-A"), commit):
        subprocess.run(["git", *words], cwd=source, check=True)
    return source


async def run(
    source: Path, commands: tuple[str, ...], *, sandboxed: bool
) -> tuple[list[int], dict[str, int]]:
    """Return the exit codes of the commands, and the questions by kind."""
    asked: dict[str, int] = {}

    async def answer(_: str, request: Any) -> Answer:
        outside = "warning" in request
        kind = "outside" if outside else request["kind"]
        asked[kind] = asked.get(kind, 0) + 1
        return Answer(kind="reject" if outside else "approve-for-session")

    work = Path(tempfile.mkdtemp(prefix="trimtab-work-"))
    cwd, home = work / source.name, work / "home"
    shutil.copytree(source, cwd, symlinks=True)
    home.mkdir()
    options: dict[str, Any] = {}
    if sandboxed:
        settings = {"sandbox": {"enabled": True, "autoAllow": True}}
        (home / "settings.json").write_text(json.dumps(settings))
        options = {"permissions": PermissionOptions(), "ask": answer}
    codes: list[int] = []
    for command in commands:
        arguments = {"command": command, "description": "work", "initial_wait": 600}
        call = {"name": "bash", "arguments": arguments}
        played = await play(
            [{"tools": [call]}, "done"], "go", cwd=str(cwd), home=str(home), **options
        )
        codes.append(find_exit_code(played))
    shutil.rmtree(work, ignore_errors=True)
    return codes, asked


def find_exit_code(played: Played) -> int:
    """Return the exit code of the one command; -1 if it did not run."""
    for event in played.events:
        if event.type == "tool.execution_complete":
            text = json.dumps(json.loads(played.lines[played.events.index(event)])["data"])
            found = re.findall(r"exited with exit code (\d+)", text)
            return int(found[-1]) if found else -1
    return -1


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    asyncio.run(main(sys.argv[1:] or list(PROJECTS)))
