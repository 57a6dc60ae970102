"""Commands as data, and the policies they are judged by."""

import re
from pathlib import Path

import msgspec

from trimtab.contracts.permission import Policy, Rule
from trimtab.permissions.rules import parse_rules

DATA = Path(__file__).parent / "unit" / "permissions" / "data"
MARKS = {"⏎": "\n", "␍": "\r", "␁": "\x01", "␀": "\0"}
WORKSPACE = "/srv/project"
POLICY = Policy(cwd=WORKSPACE, roots=(WORKSPACE, "/tmp"), home="/home/someone")


def read_cases(name: str) -> list[str]:
    """One command a line; a mark stands for what a line cannot hold."""
    lines = (DATA / f"{name}.txt").read_text().split("\n")
    return [re.sub("[⏎␍␁␀]", lambda mark: MARKS[mark[0]], line) for line in lines if line]


def read_scripts(name: str) -> list[str]:
    """The same, but a heredoc and a continued line go on over several lines."""
    return join_lines((DATA / f"{name}.txt").read_text().split("\n"))


def split_sessions(path: Path) -> list[list[str]]:
    """The commands of each session in a file; an empty line is between two sessions."""
    return [join_lines(part.split("\n")) for part in path.read_text().split("\n\n")]


def join_lines(given: list[str]) -> list[str]:
    lines = iter(given)
    scripts = []
    for line in lines:
        if not line:
            continue
        script = line
        while script.endswith("\\"):
            script += "\n" + next(lines)
        if "<<" in script and "EOF" in script:
            while (following := next(lines)) != "EOF":
                script += "\n" + following
            script += "\nEOF\n"
        scripts.append(script)
    return scripts


def rules(*texts: str) -> tuple[Rule, ...]:
    return parse_rules(texts)


DEVELOPER = msgspec.structs.replace(
    POLICY,
    allow=rules(
        *("shell(git:*)", "shell(npm:*)", "shell(gh:*)", "write"),
        *(
            f"shell({name})"
            for names in (
                "pytest python python3 make cargo go mkdir touch cp mv rm chmod ln sed tee curl",
                "tar unzip docker source . pip npx ruff mypy eslint node bash sh",
            )
            for name in names.split()
        ),
    ),
)
"""Somebody who works on a project and has approved the usual programs."""
