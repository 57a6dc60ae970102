"""Random fleets: overlaps, dependencies, failing checks and workers, kills at random moments.

Run as a program with the number of fleets: `python tests/properties/fleet_cases.py 200`.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clikit import bash, serving
from fleetkit import Fleet, script_of, statuses, todo

SHARED = "shared.txt"
CHECK = "! grep -rs BAD --include=*.txt ."
RESOLVE = f"sed -i -e '/^<<<<<<< /d' -e '/^=======$/d' -e '/^>>>>>>> /d' {SHARED}"
MEND = "sed -i s/BAD/GOOD/ *.txt"


class Case:
    """A random plan, and a script for the model that answers its workers."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        names = [f"t{number}" for number in range(rng.randint(2, 6))]
        self.todos = []
        self.rules: list[dict[str, Any]] = []
        self.overlapping: list[str] = []
        self.failing: list[str] = []
        repairs: list[dict[str, Any]] = []
        for index, name in enumerate(names):
            needs = rng.sample(names[:index], rng.randint(0, min(2, index)))
            self.todos.append(todo(name, *needs))
            repairs += self.add_repair(name)
            self.rules += self.add_work(name)
        rng.shuffle(self.todos)
        self.rules = [*repairs, *self.rules]
        self.kills = rng.choice([0, 0, 1, 2, 3])
        self.worker_kills = rng.choice([0, 0, 1, 2])
        self.args = ["--workers", str(rng.randint(1, 3)), "--check", CHECK, "--allow-all"]

    def add_work(self, name: str) -> list[dict[str, Any]]:
        when = {"last": f"TODO-{name}-HERE"}
        kind = self.rng.choice(["own", "own", "overlap", "overlap", "red", "none", "fails"])
        delay = self.rng.choice([0.0, 0.0, 0.1, 0.3])
        text = "BAD" if kind == "red" else name
        calls = [bash(f"echo {text} > {name}.txt")]
        if kind == "overlap":
            self.overlapping.append(name)
            calls.append(bash(f"sed -i '2s/.*/& {name}/' {SHARED}"))
        if kind == "none":
            calls = [bash("true")]
        if kind == "fails":
            self.failing.append(name)
            failure = {"status": 400, "message": "No."}
            return [{"when": when, "tools": calls, "repeat": 1}, {"when": when, "error": failure}]
        return [{"when": when, "tools": calls, "delay": delay}]

    def add_repair(self, name: str) -> list[dict[str, Any]]:
        """Decide what the agent does that repairs the merge of a todo: its work, or nothing."""
        when = {"last": f"(?s)being merged:\\s+<todo id=.{name}. .*This folder holds the merge"}
        if self.rng.random() < 0.6:
            return [{"when": when, "tools": [bash(f"{RESOLVE}; {MEND}")]}]
        return [{"when": when, "text": "I cannot.", "delay": self.rng.choice([0.0, 0.2])}]


class Play:
    """One case, played to its end through all kills."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.fleet = Fleet(folder)
        self.fleet.write(SHARED, "top\nline\nbottom\n")
        self.base = self.fleet.commit("shared")
        self.fleet.write("mine.txt", "not committed")
        self.fleet.write("base.txt", "changed, not committed\n")
        self.before = self.look()
        self.merged: set[str] = set()

    def look(self) -> tuple[Any, ...]:
        """Return everything about the person's checkout that must stay."""
        root = self.fleet.cli.cwd
        files = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
        status = self.fleet.git("status", "--short")
        return (
            files,
            status,
            self.fleet.git("rev-parse", "HEAD"),
            self.fleet.git("branch", "--show-current"),
        )

    async def run(self) -> dict[str, Any]:
        plan = self.fleet.plan(*self.case.todos)
        args = ["fleet", "The goal", "--plan", plan, "--output-format", "json", *self.case.args]
        async with serving(script_of(self.case.rules)) as server:
            self.fleet.cli.use(server)
            for _ in range(self.case.kills):
                await self.run_killed(args)
                args = self.resume_args()
            return await self.run_to_end(args)

    def resume_args(self) -> list[str]:
        found = self.fleet.ids()
        if not found:  # killed before it began
            plan = str(self.fleet.folder / "plan.json")
            return ["fleet", "The goal", "--plan", plan, "--output-format", "json", *self.case.args]
        return ["fleet", "resume", found[-1], "--output-format", "json"]

    def log(self, name: str) -> list[dict[str, Any]]:
        path = self.fleet.cli.home / "fleets" / name / "events.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    async def run_killed(self, args: list[str]) -> None:
        process = await self.fleet.cli.start(*args)
        reading = asyncio.ensure_future(process.communicate())
        await asyncio.wait([reading], timeout=self.case.rng.uniform(0.2, 2.5))
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(20):
            await reading
        await self.fleet.gone()
        for name in self.fleet.ids():
            events = self.log(name)
            self.merged |= {each["todo"] for each in events if each["type"] == "fleet.merged"}

    async def run_to_end(self, args: list[str]) -> dict[str, Any]:
        process = await self.fleet.cli.start(*args)
        killing = asyncio.ensure_future(self.kill_workers(process.pid))
        try:
            async with asyncio.timeout(60):
                out, err = await process.communicate()
        finally:
            killing.cancel()
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert result["type"] == "result", (out, err)
        assert result["exitCode"] == process.returncode
        assert process.returncode in (0, 3), (process.returncode, err.decode())
        assert b"Internal error" not in err, err.decode()
        fleet: dict[str, Any] = result["fleet"]
        return fleet

    async def kill_workers(self, coordinator: int) -> None:
        for _ in range(self.case.worker_kills):
            await asyncio.sleep(self.case.rng.uniform(0.2, 1.0))
            children = Path(f"/proc/{coordinator}/task/{coordinator}/children")
            try:
                pids = [int(pid) for pid in children.read_text().split()]
            except OSError:
                return
            workers = [pid for pid in pids if b"--session-id" in read_bytes(f"/proc/{pid}/cmdline")]
            if workers:
                os.kill(self.case.rng.choice(workers), signal.SIGKILL)

    def check(self, fleet: dict[str, Any]) -> None:
        """Hold what every fleet promises."""
        found = statuses(fleet)
        branch, git = fleet["branch"], self.fleet.git
        merged = sorted(name for name, status in found.items() if status == "merged")
        assert self.fleet.trailers(branch) == merged, "a commit is lost or doubled"
        assert self.merged <= set(merged), "a merge was taken back by a kill"
        assert set(found.values()) <= {"merged", "unchanged", "failed", "blocked"}, found
        good = set(found.values()) <= {"merged", "unchanged"}
        assert (fleet["exitCode"] == 0) is good
        assert fleet["status"] == "finished"
        assert git("rev-parse", branch) == fleet["tip"]
        for each in fleet["todos"]:
            self.check_todo(each, fleet, found)
        self.check_tip(fleet, merged)
        assert self.look() == self.before, "the person's checkout was touched"
        assert not self.fleet.processes(), "a process is left"
        assert len(git("worktree", "list").splitlines()) == 1
        assert not (self.fleet.folder / "project.worktrees").exists()
        refs = git("for-each-ref", "--format=%(refname)", "refs/heads/trimtab").split()
        known = {each["branch"] for each in fleet["todos"] if each["commit"]} | {branch}
        assert known <= {ref.removeprefix("refs/heads/") for ref in refs}

    def check_todo(
        self, each: dict[str, Any], fleet: dict[str, Any], found: dict[str, str]
    ) -> None:
        git, needs = self.fleet.git, self.needs(each["id"])
        if each["commit"]:
            assert git("rev-parse", each["branch"]) == each["commit"], "work is lost"
            assert f"Trimtab-Todo: {each['id']}" in git("log", "-1", "--format=%B", each["commit"])
        if each["status"] == "merged":
            git("merge-base", "--is-ancestor", each["commit"], fleet["branch"])
            for name in needs:
                other = next(todo for todo in fleet["todos"] if todo["id"] == name)
                assert other["status"] in ("merged", "unchanged")
                if other["commit"]:
                    git("merge-base", "--is-ancestor", other["commit"], each["commit"])
        if each["status"] == "blocked":
            assert any(found[name] in ("failed", "blocked") for name in needs)
        if each["status"] == "failed":
            assert each["reason"], "a failure without a reason"
            if "failed after the merge" in each["reason"]:
                assert each["files"]
                assert "BAD" in each["checks"][0]["output"]

    def check_tip(self, fleet: dict[str, Any], merged: list[str]) -> None:
        git = self.fleet.git
        contents = {
            name: self.fleet.show(fleet["branch"], name)
            for name in git("ls-tree", "--name-only", fleet["branch"]).split()
        }
        assert not any("BAD" in text for text in contents.values()), "the branch is red"
        assert not any("<<<<<<<" in text for text in contents.values())
        for name in merged:
            assert f"{name}.txt" in contents, "merged work is missing"
            if name in self.case.overlapping:
                assert name in contents[SHARED], "one side won silently"

    def needs(self, name: str) -> list[str]:
        return next(each["depends_on"] for each in self.case.todos if each["id"] == name)


def read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


async def play(seed: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix=f"trimtab-fleet-{seed}-"))
    game = Play(Case(seed), folder)
    fleet = await game.run()
    game.check(fleet)
    shutil.rmtree(folder)
    return {**fleet, "kills": game.case.kills}


async def main(count: int, first: int) -> None:
    totals: dict[str, int] = {}
    for seed in range(first, first + count):
        try:
            fleet = await play(seed)
        except BaseException:
            print(f"seed {seed} fails", flush=True)
            raise
        for status in statuses(fleet).values():
            totals[status] = totals.get(status, 0) + 1
        totals["kills"] = totals.get("kills", 0) + fleet["kills"]
        totals["conflicts"] = totals.get("conflicts", 0) + len(fleet["conflicts"])
        print(seed, fleet["exitCode"], statuses(fleet), flush=True)
    print(f"{count} fleets: one green branch or a precise report each, 0 commits lost or doubled, "
          f"0 processes left, checkouts untouched; {totals}")  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
