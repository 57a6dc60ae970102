"""What the analyser finds in every command of our lists, kept in a file.

    python tests/properties/analyses.py --write

writes `tests/unit/permissions/data/analyses.txt` anew. A test compares: whoever changes the
analyser sees in the difference which commands are read otherwise, and can judge each.
"""

import sys
from collections.abc import Iterator

import msgspec

from permissionkit import DATA, POLICY, read_cases, read_scripts, split_sessions
from trimtab.permissions.shell.verdict.analyse import analyse
from trimtab.permissions.shell.verdict.analysis import Analysis, Found

FILE = DATA / "analyses.txt"
LISTS = (
    *("addresses", "forbidden", "grammar", "grammar_2", "grammar_3", "hazards", "hidden"),
    *("hostile", "harmless", "ruled", "uncertain"),
)
MARKED = ("hazards", "hidden")
"""Lists whose lines begin with a mark and a tab."""
FLAGS = ("read_only", "shadow", "doubtful", "literal")


def main() -> int:
    """Write the file, or say which commands are read otherwise."""
    if "--write" in sys.argv:
        FILE.write_text("".join(f"{line}\n" for line in describe_all()), encoding="utf-8")
        return 0
    known = set(read_known())
    differ = [line for line in describe_all() if line not in known]
    print(*differ, sep="\n")
    return 1 if differ else 0


def read_known() -> list[str]:
    return FILE.read_text(encoding="utf-8").split("\n")[:-1]


def describe_all() -> Iterator[str]:
    """Yield a line for each command: the command, and what was found in it."""
    for command in dict.fromkeys(list_commands()):
        if "~root" in command:  # the home of another user differs between machines
            continue
        found = analyse(command, POLICY.cwd, POLICY.home)
        yield f"{write(command)}\t{describe(found)}"


def list_commands() -> Iterator[str]:
    for name in LISTS:
        for line in read_cases(name):
            yield line.partition("\t")[2] if name in MARKED else line
    yield from read_scripts("everyday")
    for path in sorted((DATA / "sessions").iterdir()):
        for session in split_sessions(path):
            yield from session


def describe(analysis: Analysis) -> str:
    """Return all that is known of a command, in one line; what is empty is left out."""
    fields = msgspec.structs.asdict(analysis)
    commands = " ".join(map(describe_command, fields.pop("commands")))
    fields["carried"] = [" ".join(found.words) for found in analysis.carried]
    rest = [f"{name}={write(value)}" for name, value in fields.items() if value]
    return " ".join((f"[{commands}]", *rest))


def describe_command(found: Found) -> str:
    """Return a program with the first letters of its flags, and its words."""
    flags = "".join(flag[0] for flag in FLAGS if getattr(found, flag))
    names = dict.fromkeys((found.identifier, found.base))
    name = " as ".join(write(each)[1:-1] for each in names)
    words = write(found.words)
    leading = "" if found.leading == found.words else f"<{len(found.leading)}"
    return f"{name}:{flags}{words}{leading}"


def write(value: object) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    sys.exit(main())
