"""A repository, a plan and a scripted model for fleets."""

import asyncio
import json
from pathlib import Path
from typing import Any

from clikit import Cli, Outcome, serving
from gitkit import git, make_repository


def todo(name: str, *needs: str, title: str = "") -> dict[str, Any]:
    """Return a todo whose description holds a word that a rule of the script looks for."""
    return {
        "id": name,
        "title": title or f"Part {name}",
        "description": f"TODO-{name}-HERE",
        "depends_on": list(needs),
    }


def writes(name: str, path: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a rule: the worker of a todo creates a file."""
    call = {"name": "create", "arguments": {"path": path, "file_text": text}}
    return {"when": {"last": f"TODO-{name}-HERE"}, "tools": [call], **more}


def edits(name: str, path: str, old: str, new: str) -> dict[str, Any]:
    call = {"name": "edit", "arguments": {"path": path, "old_str": old, "new_str": new}}
    return {"when": {"last": f"TODO-{name}-HERE"}, "tools": [call]}


class Fleet:
    """A project with a commit, in which fleets are started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cli = Cli(folder)
        make_repository(self.cli.cwd)
        self.write("base.txt", "one\ntwo\nthree\n")
        self.commit("base")
        self.base = self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str) -> None:
        path = self.cli.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def git(self, *args: str) -> str:
        return git(self.cli.cwd, *args).strip()

    def plan(self, *todos: dict[str, Any]) -> str:
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"todos": list(todos)}))
        return str(path)

    async def run(self, rules: Any, *args: str, **options: Any) -> Outcome:
        """Run `trimtab fleet` against a scripted model."""
        script = rules if isinstance(rules, dict) else script_of(rules)
        async with serving(script) as server:
            self.server = server
            return await self.cli.use(server).run("fleet", *args, **options)

    async def start(self, rules: list[Any], plan: str, *args: str) -> dict[str, Any]:
        """Run a fleet and return the `fleet` of its result."""
        outcome = await self.run(rules, "Reach the goal", "--plan", plan, "--json", *args)
        return read_fleet(outcome)

    def show(self, branch: str, path: str) -> str:
        return git(self.cli.cwd, "show", f"{branch}:{path}")

    def trailers(self, branch: str) -> list[str]:
        """Return the todos of the commits on a branch, one for each commit that names one."""
        listed = self.git(
            "log", "--format=%(trailers:key=Trimtab-Todo,valueonly,separator=%x2C)", branch
        )
        return sorted(line for line in listed.split("\n") if line)

    def ids(self) -> list[str]:
        """Return the fleets that have begun."""
        logs = (self.cli.home / "fleets").glob("*/events.jsonl")
        return sorted(path.parent.name for path in logs if path.stat().st_size)

    async def gone(self) -> None:
        """Wait until no process of this folder is left."""
        async with asyncio.timeout(50):
            while self.processes():  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)

    def processes(self) -> list[int]:
        """Return the processes that have this folder in their arguments or environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(self.folder).encode() in text and state not in "ZX":
                found.append(int(entry.name))
        return found


def script_of(rules: Any) -> dict[str, Any]:
    return {"replies": list(rules), "otherwise": {"text": "Done."}}


def read_fleet(outcome: Outcome) -> dict[str, Any]:
    result = json.loads(outcome.text)
    assert result["type"] == "result"
    assert result["exitCode"] == outcome.code
    fleet: dict[str, Any] = result["fleet"]
    return fleet


def statuses(fleet: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["status"] for each in fleet["todos"]}
