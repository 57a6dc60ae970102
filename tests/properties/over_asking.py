"""How many everyday commands are asked about that rules and their nature should let pass.

`python over_asking.py 0` judges the lists in `tests/unit/permissions/data`: what only reads without
any rule, the rest with the rules of somebody who works on a project.
"""

import sys

from permissionkit import DEVELOPER, POLICY, read_scripts
from trimtab.permissions.decide_shell import decide_shell

MOST_ASKED = 0.02
LISTS = {"harmless": POLICY, "ruled": DEVELOPER, "everyday": DEVELOPER}


def main() -> int:
    asked, count = [], 0
    for name, policy in LISTS.items():
        commands = read_scripts(name)
        count += len(commands)
        asked += [one for one in commands if decide_shell(one, policy).verdict != "allow"]
    print("\n".join(asked))
    print(f"{100 * len(asked) / count:.1f} % of {count} commands")
    return 0 if len(asked) <= MOST_ASKED * count else 1


if __name__ == "__main__":
    sys.exit(main())
