"""Random work of an agent, its shell, the person and another session, then undo: nothing is lost.

Run as a program with the number of cases: `python tests/properties/undo_cases.py 10000`.
"""

import asyncio
import os
import random
import shutil
import stat
import sys
import tempfile

from trimtab.contracts.events.user import UserMessage
from trimtab.contracts.ids import new_id
from trimtab.session.folder import SessionFolder
from trimtab.session.log import EventLog
from trimtab.session.session import Projections, Session
from trimtab.undo.history import FileHistory, Plan, UndoRequest
from trimtab.undo.recorded_workspace import RecordedWorkspace
from trimtab.undo.recorder import Reason, Recorder
from trimtab.workspace.local import LocalWorkspace

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A file system without a disk, where there is one: a case is thousands of small file operations."""
FOLDERS = ("", "src", "src/deep", "docs")
NAMES = ("a.txt", "b.txt", "c.bin", "d.txt")

Seen = tuple[str, int, bytes]
"""Kind, mode, and bytes or link target of a path."""


class Party:
    """One session at work in the folder, with its own record."""

    def __init__(self, base: str, root: str) -> None:
        self.folder = os.path.join(base, "state", "session-state", new_id())
        os.makedirs(self.folder)
        self.place = SessionFolder(os.path.basename(self.folder), self.folder)
        self.log = os.path.join(self.folder, "events.jsonl")
        self.session = Session("x", EventLog.create(self.log), Projections())
        self.workspace = LocalWorkspace(
            root=root, files=self.folder, env={"PATH": os.environ["PATH"], "HOME": "/nowhere"}
        )
        self.recorder = Recorder(self.session, self.workspace, self.place, lambda _: True, [root])
        self.files = RecordedWorkspace(
            self.workspace, self.recorder, "call", agent=None, confined=True, fenced=False
        )
        self.history = FileHistory(self.place, self.recorder.store, self.recorder.record)

    def begin_turn(self) -> None:
        self.session.emit(UserMessage(content="go"))

    def close(self) -> None:
        self.recorder.close()
        self.session.close()


class Case:
    """One folder and what happens in it, by number."""

    def __init__(self, seed: int, base: str) -> None:
        self.rng = random.Random(seed)
        self.root = os.path.join(os.path.realpath(base), "project")
        os.makedirs(self.root)
        self.count = 0
        self.touched: set[str] = set()
        self.tokens: set[bytes] = set()
        self.make_tree()
        self.agent, self.other = Party(base, self.root), Party(base, self.root)

    def make_tree(self) -> None:
        for folder in FOLDERS:
            os.makedirs(os.path.join(self.root, folder), exist_ok=True)
            for name in NAMES:
                if self.rng.random() < 0.7:
                    self.put(os.path.join(folder, name), self.content(name))
        os.makedirs(os.path.join(self.root, "empty"))
        os.symlink("../docs", os.path.join(self.root, "src", "link"))

    def content(self, name: str) -> bytes:
        if name.endswith(".bin"):
            return self.rng.randbytes(40) + b"\0"
        lines = [f"{i} {self.rng.random()}\n".encode() for i in range(self.rng.randint(0, 12))]
        return b"".join(lines) + self.rng.choice([b"", b"no newline"])

    def put(self, name: str, data: bytes) -> str:
        path = os.path.join(self.root, name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, self.rng.choice([0o644, 0o600, 0o755]))
        return path

    def some_file(self, *, writable: bool = False) -> str | None:
        """Choose a file; tools and `>>` refuse one without its write bit, except for root."""
        files = [
            path
            for path, (kind, mode, _) in look(self.root).items()
            if kind == "file" and (mode & stat.S_IWUSR or not writable)
        ]
        return self.rng.choice(sorted(files)) if files else None

    def some_folder(self) -> str:
        folders = [path for path, seen in look(self.root).items() if seen[0] == "dir"]
        return self.rng.choice([self.root, *sorted(folders)])

    def token(self, who: str) -> bytes:
        self.count += 1
        return f"{who}{self.count} {self.rng.random()}\n".encode()

    async def agent_writes(self, party: Party, who: str) -> None:
        """An edit of one line, or a new file, by a tool."""
        path = self.some_file(writable=True)
        token = self.token(who)
        if path is None or self.rng.random() < 0.3:
            deep, folder = self.rng.random() < 0.3, self.some_folder()
            made = os.path.join(folder, "made")
            if deep and (os.path.isdir(made) or not os.path.lexists(made)):
                folder = os.path.realpath(made)
            path = os.path.join(folder, f"new{self.count}.txt")
            data = token
        else:
            data = changed(read(path), token, self.rng)
        await party.files.write(path, data)
        if party is self.other:
            self.mark(path, token)

    async def shell_runs(self) -> None:
        """Something like rm, mv, chmod, >>, sed -i by a command of the agent."""
        reason = Reason("shell", "call", "a command")
        await self.agent.recorder.begin(reason)
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice(
                [
                    self.remove,
                    self.remove_tree,
                    self.move,
                    self.append,
                    self.change_mode,
                    self.relink,
                    self.replace_tree,
                ]
            )()
        if self.rng.random() < 0.2:
            await self.agent_writes(self.other, "other")
        await self.agent.recorder.end(reason)

    def remove(self) -> None:
        if path := self.some_file():
            os.unlink(path)

    def remove_tree(self) -> None:
        folder = self.some_folder()
        if folder != self.root:
            shutil.rmtree(folder)

    def replace_tree(self) -> None:
        """Something else takes the place of a folder."""
        folder = self.some_folder()
        if folder == self.root:
            return
        shutil.rmtree(folder)
        if self.rng.random() < 0.5:
            os.symlink(self.rng.choice(["docs", "../docs", "nowhere", "/"]), folder)
        else:
            with open(folder, "wb") as file:
                file.write(self.token("shell"))

    def move(self) -> None:
        if path := self.some_file():
            self.count += 1
            os.rename(path, os.path.join(self.some_folder(), f"moved{self.count}"))

    def append(self) -> None:
        if path := self.some_file(writable=True):
            with open(path, "ab") as file:
                file.write(self.token("shell"))

    def change_mode(self) -> None:
        if path := self.some_file():
            os.chmod(path, self.rng.choice([0o644, 0o600, 0o755, 0o444]))

    def relink(self) -> None:
        link = os.path.join(self.root, "src", "link")
        if os.path.islink(link):
            os.unlink(link)
            os.symlink("elsewhere", link)

    def person_works(self) -> None:
        kind = self.rng.random()
        path = self.some_file()
        token = self.token("person")
        if path is None or kind < 0.25:
            self.count += 1
            path = os.path.join(self.some_folder(), f"mine{self.count}.txt")
            with open(path, "wb") as file:
                file.write(token)
            self.mark(path, token)
        elif kind < 0.8:
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | 0o200)
            data = changed(read(path), token, self.rng)
            with open(path, "wb") as file:
                file.write(data)
            self.mark(path, token)
        elif kind < 0.9:
            os.unlink(path)
            self.touched.add(path)
        else:
            os.chmod(path, 0o640)
            self.touched.add(path)

    def mark(self, path: str, token: bytes) -> None:
        """Somebody else has written this; whatever undo does, it must stay."""
        self.touched.add(path)
        self.tokens.add(token)

    async def play(self) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.agent.begin_turn()
            self.other.begin_turn()
            for _ in range(self.rng.randint(1, 4)):
                kind = self.rng.random()
                if kind < 0.35:
                    await self.agent_writes(self.agent, "agent")
                elif kind < 0.6:
                    await self.shell_runs()
                elif kind < 0.85:
                    self.person_works()
                else:
                    await self.agent_writes(self.other, "other")


def changed(data: bytes, token: bytes, rng: random.Random) -> bytes:
    """A text with one line more or another line; of a binary file another one."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        return b"\n".join((*lines[:at], token.rstrip(b"\n"), *lines[at:]))
    return b"\n".join((*lines[:at], token.rstrip(b"\n"), *lines[at + 1 :]))


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def look(root: str) -> dict[str, Seen]:
    """Everything below a folder, exactly."""
    found: dict[str, Seen] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[path] = "link", 0, os.readlink(path).encode()
            elif stat.S_ISDIR(mode):
                found[path] = "dir", stat.S_IMODE(mode), b""
            else:
                found[path] = "file", stat.S_IMODE(mode), read(path)
    return found


def without_folders(seen: dict[str, Seen]) -> dict[str, Seen]:
    return {path: one for path, one in seen.items() if one[0] != "dir"}


def check_undone(case: Case, first: dict[str, Seen], before: dict[str, Seen], plan: Plan) -> None:
    """What undo must have done, and what it must not have touched."""
    after = look(case.root)
    for path, seen in first.items():
        if not any(path == one or path.startswith(one + "/") for one in case.touched):
            assert after.get(path) == seen, ("not restored", path, seen, after.get(path), plan)
    kept = b"\n".join(seen[2] for seen in after.values())
    for token in (token.rstrip(b"\n") for token in case.tokens):
        if any(token in seen[2] for seen in before.values()):
            assert token in kept, ("somebody's bytes are gone", token)
    for one in (one for one in plan.problems if one.path in before):
        assert after.get(one.path) == before.get(one.path), ("a conflict was written", one)
    explained = case.touched.union(one.path for one in plan.problems)
    for path, seen in without_folders(after).items():
        if path not in first and path not in explained:
            raise AssertionError(("the agent's file stayed", path, seen))


async def check(seed: int) -> None:
    """One case: work, undo of everything, redo, undo again."""
    base = tempfile.mkdtemp(prefix="trimtab-undo-", dir=MEMORY)
    case = Case(seed, base)
    try:
        first = look(case.root)
        await case.play()
        before = look(case.root)
        history = case.agent.history
        plan = history.apply(history.plan_undo(UndoRequest(turn=1, since=True)))
        check_undone(case, first, before, plan)
        undone = look(case.root)
        if any(one.is_needed for one in plan.files):
            again = history.apply(history.plan_redo(UndoRequest()))
            assert not again.problems, again.problems
            assert without_folders(look(case.root)) == without_folders(before), "redo differs"
            history.apply(history.plan_undo(UndoRequest(turn=1, since=True)))
            assert without_folders(look(case.root)) == without_folders(undone), (
                "second undo differs"
            )
    finally:
        case.agent.close()
        case.other.close()
        await case.agent.workspace.aclose()
        await case.other.workspace.aclose()
        shutil.rmtree(base)


async def main(total: int) -> None:
    for seed in range(total):
        try:
            await check(seed)
        except BaseException:
            print(f"case {seed} failed")
            raise
    print(f"{total} cases: every path restored, no byte of others lost")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
