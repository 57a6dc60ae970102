"""Commands as data, and the policies they are judged by."""

import re
from pathlib import Path

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
    lines = iter((DATA / f"{name}.txt").read_text().split("\n"))
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
