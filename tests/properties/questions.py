"""How often a person is asked: commands of whole sessions, and what they cost in questions.

`python questions.py` plays the lists in `tests/unit/permissions/data`. Whoever is asked approves
for always what can be approved so; the first session of a project is not counted, as nothing has
been approved before it.

`python questions.py --recorded DIR` plays sessions that real agents had: a file `PROJECT.N.jsonl`
for each, in the order of their names, with a line `{"command", "cwd"}` for each command. With
`--together` they are sessions of one person, who approves for every project, with `--confined` of
one whose commands run in a sandbox with `autoAllow`.
"""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from permissionkit import DATA, POLICY, split_sessions
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, to_rules
from trimtab.permissions.decide_shell import judge_analysis
from trimtab.permissions.paths import resolve
from trimtab.permissions.shell.verdict.analyse import analyse

MOST = 5.0


class Line(msgspec.Struct):
    """One command of a recorded session."""

    command: str
    cwd: str = POLICY.cwd


def count_questions(lines: list[Line], policy: Policy) -> tuple[list[str], Policy]:
    """The commands that are asked about, with the reason, and the policy with what was approved."""
    asked = []
    for line in lines:
        command = line.command
        place = (resolve(line.cwd), *POLICY.roots)
        policy = msgspec.structs.replace(policy, cwd=line.cwd, roots=place)
        analysis = analyse(command, line.cwd, POLICY.home)
        decision = judge_analysis(analysis, policy)
        if decision.verdict == "allow":
            continue
        asked.append(f"{command}\n    {decision.reason}")
        access = Access(kind="shell", target=command)
        approvals = [generalise(access, analysis), {"kind": "write"} if analysis.targets else None]
        rules = [rule for one in approvals if one for rule in to_rules(one, "always")]
        policy = msgspec.structs.replace(policy, allow=(*policy.allow, *rules))
    return asked, policy


def read_lists() -> Iterator[list[list[Line]]]:
    """The sessions of each project in our own lists."""
    for path in sorted((DATA / "sessions").glob("*.txt")):
        yield [[Line(command) for command in session] for session in split_sessions(path)]


def read_recorded(folder: Path, *, together: bool) -> Iterator[list[list[Line]]]:
    """The sessions of each project in a folder of recorded ones, or those of all as of one."""
    decode = msgspec.json.Decoder(Line).decode_lines
    paths = sorted(folder.glob("*.jsonl"))
    for _, files in groupby(paths, key=lambda path: together or path.name.partition(".")[0]):
        yield [decode(path.read_bytes()) for path in files]


def measure(projects: Iterator[list[list[Line]]], start: Policy = POLICY) -> tuple[list[str], int]:
    """The commands asked about in later sessions, and how many commands those had."""
    asked: list[str] = []
    count = 0
    for first, *later in projects:
        _, policy = count_questions(first, start)
        for session in later:
            more, policy = count_questions(session, policy)
            asked += more
            count += len(session)
    return asked, count


def main(arguments: list[str]) -> int:
    projects = read_lists()
    if arguments[:1] == ["--recorded"]:
        projects = read_recorded(Path(arguments[1]), together="--together" in arguments)
    confined = "--confined" in arguments
    asked, count = measure(projects, msgspec.structs.replace(POLICY, confined=confined))
    print("\n".join(asked))
    rate = 100 * len(asked) / count
    print(f"{rate:.1f} per 100 of {count} commands")
    return 0 if rate <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
