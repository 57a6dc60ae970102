"""Random calls of programs that only read, with random options: does one of them change a file?

Run as a program with the number of cases and, if wanted, a seed.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from gitkit import git
from trimtab.permissions.shell.programs.options import load_table
from trimtab.permissions.shell.verdict.analyse import analyse

WAITING = frozenset(("yes", "sleep", "tail", "w", "free", "ps", "tee", "read", "cal", "wait"))
EXTRA = ("find", "sed", "awk", "xargs", "env", "timeout", "nice", "command", "bash -c")
OPERANDS = (
    "a.txt",
    "b.txt",
    "out",
    "sub",
    "-",
    "1",
    "p",
    "s/a/b/",
    "{print}",
    "HEAD",
    "*.txt",
    "+x",
    "new",
)
OPTIONS = (
    "--output=out",
    "-oout",
    "-o",
    "--out",
    "-w",
    "-i",
    "--in-place",
    "-delete",
    "-fprint",
    "-exec",
    "-print",
)


def make_command(seed: str) -> str:
    chance = random.Random(seed)
    tables = {**load_table("programs"), **load_table("git")}
    names = [name for name, table in tables.items() if name not in WAITING and not table.text]
    name = chance.choice([*names, *EXTRA * 3])
    table = tables.get(name)
    words = [name]
    for _ in range(chance.randint(0, 4)):
        kind = chance.random()
        if kind < 0.4:
            words.append(
                "-"
                + "".join(
                    chance.choices(
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123",
                        k=chance.randint(1, 2),
                    )
                )
            )
        elif kind < 0.6 and table is not None and table.long:
            option = chance.choice(table.long.split())
            words.append(
                option.rstrip("=?")
                + ("=out" if option[-1] in "=?" and chance.random() < 0.7 else "")
            )
        elif kind < 0.7:
            words.append(chance.choice(OPTIONS))
        else:
            words.append(f"'{chance.choice(OPERANDS)}'" if chance.random() < 0.9 else "*")
    return " ".join(words)


class Changed(msgspec.Struct, frozen=True):
    command: str
    seed: str


class Figures(msgspec.Struct):
    cases: int = 0
    run: int = 0
    changed: list[Changed] = []


class Tree:
    """A small repository, and the hash of everything in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sub").mkdir()
        for name in ("a.txt", "b.txt", "out", "sub/c.txt"):
            (folder / name).write_text("b\na\na\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "sub"),
            "LC_ALL": "C.UTF-8",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
            "PAGER": "cat",
            "TERM": "dumb",
        }
        for line in ("init -q", "add .", "commit -qm x", "tag v1"):
            git(folder, *line.split())

    def digest(self) -> str:
        total = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            total.update(str(path).encode())
            if path.is_file():
                total.update(path.read_bytes())
        return total.hexdigest()

    def run(self, command: str) -> None:
        process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def fuzz(cases: int, seed: str = "0") -> Figures:
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="reading-fuzz-") as folder:
        master = Path(folder) / "master"
        master.mkdir()
        tree = Tree(master)
        before = tree.digest()
        for number in range(cases):
            command = make_command(f"{seed}:{number}")
            figures.cases += 1
            if not analyse(command, str(master), str(master / "sub")).read_only:
                continue
            if not shutil.which(command.split()[0]) and command.split()[0] not in ("command", "cd"):
                continue
            figures.run += 1
            tree.run(command)
            if (after := tree.digest()) != before:
                figures.changed.append(Changed(command, f"{seed}:{number}"))
                before = after
    return figures


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    result = fuzz(wanted, sys.argv[2] if len(sys.argv) > 2 else "0")
    for one in result.changed[:20]:
        print(f"{one.seed}: a file was changed by {one.command!r}")
    print(
        f"{result.cases} cases, {result.run} run as read-only, {len(result.changed)} changed files"
    )
    sys.exit(bool(result.changed))
