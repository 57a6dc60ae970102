"""How often a person is asked: commands of whole sessions, and what they cost in questions.

`python questions.py 0` plays the lists in `tests/unit/permissions/data`. Whoever is asked approves
for always what can be approved so; the first session of a project is not counted, as nothing has
been approved before it.
"""

import sys

import msgspec

from permissionkit import DATA, POLICY, split_sessions
from trimtab.contracts.permission import Policy
from trimtab.contracts.tool import Access
from trimtab.permissions.approvals import generalise, to_rules
from trimtab.permissions.decide_shell import judge_analysis
from trimtab.permissions.shell.analysis import analyse

MOST = 5.0


def count_questions(commands: list[str], policy: Policy) -> tuple[list[str], Policy]:
    """The commands that are asked about, and the policy with what was approved."""
    asked = []
    for command in commands:
        analysis = analyse(command, POLICY.cwd, POLICY.home)
        if judge_analysis(analysis, policy).verdict == "allow":
            continue
        asked.append(command)
        access = Access(kind="shell", target=command)
        approvals = [generalise(access, analysis), {"kind": "write"} if analysis.targets else None]
        rules = [rule for one in approvals if one for rule in to_rules(one, "always")]
        policy = msgspec.structs.replace(policy, allow=(*policy.allow, *rules))
    return asked, policy


def measure() -> tuple[list[str], int]:
    """The commands asked about in later sessions, and how many commands those had."""
    asked: list[str] = []
    count = 0
    for path in sorted((DATA / "sessions").glob("*.txt")):
        first, *later = split_sessions(path)
        _, policy = count_questions(first, POLICY)
        for session in later:
            more, policy = count_questions(session, policy)
            asked += more
            count += len(session)
    return asked, count


def main() -> int:
    asked, count = measure()
    print("\n".join(asked))
    rate = 100 * len(asked) / count
    print(f"{rate:.1f} per 100 of {count} commands")
    return 0 if rate <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
