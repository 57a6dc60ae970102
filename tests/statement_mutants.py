"""Mutation tests of statements: break the code of each, and list those whose tests pass still.

    python tests/statement_mutants.py [ID or GROUP …] [--tries N] [--seed N]

One run of the tests that prove statements, under coverage, finds the lines they reach. A statement
is tried by changing one of them at a time, beginning with the files where it is built, and there
with the lines that the tests of the fewest other statements reach; then its own tests run alone.
It holds if a change is noticed. Of the others the changes are printed: places to look.
"""

import argparse
import ast
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from mutants import (
    CACHE,
    MOST_SECONDS,
    SOURCE,
    TOP,
    Measured,
    Mutant,
    is_noticed,
    list_mutations,
    make_copy,
    make_mutant,
    measure_tests,
)
from requirements import built, decided, proven, statements

TEXTS = ("src/trimtab/prompts/sections", "src/trimtab/customize/builtin")
"""Folders of words by which a statement may be built, without a line that coverage could see."""
Line = tuple[str, int]


@dataclass(frozen=True)
class Statement:
    """A statement, where it is built, and the tests that prove it, the shortest first."""

    name: str
    says: str
    files: frozenset[str]
    tests: tuple[str, ...]
    lines: frozenset[Line]
    """The lines that the tests reach."""


def main() -> int:
    """Try the statements; exit with 1 if the code of one can be broken unnoticed."""
    parser = argparse.ArgumentParser(description="Break statements, and see whether tests notice.")
    parser.add_argument("wanted", nargs="*", metavar="ID or GROUP")
    parser.add_argument("--tries", type=int, default=4, help="changes of each statement")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other changes")
    args = parser.parse_args()
    copy = make_copy(CACHE / "statements")
    tests = {name: tests for name, tests in proven().items() if name not in decided()}
    found = interleave(list_statements(measure(copy, tests), tests))
    shared = Counter(line for statement in found for line in statement.lines)
    held = tried = 0
    for statement in found:
        if args.wanted and not {statement.name, statement.name.partition("-")[0]} & {*args.wanted}:
            continue
        chance = random.Random(f"{args.seed} {statement.name}")
        changes = list_changes(statement, shared, chance, args.tries)
        noticed = next((c for c in changes if is_noticed(copy, c, [*statement.tests])), None)
        held += noticed is not None
        tried += bool(changes)
        verdict = "holds" if noticed else "DOES NOT HOLD" if changes else "cannot be changed"
        print(f"{statement.name} {verdict}", flush=True)
        for change in [noticed] if noticed else changes:
            print(f"  {change.path}:{change.line}")
            print(f"    - {change.before.strip()}\n    + {change.after.strip()}", flush=True)
    print(f"{held} of {tried} statements hold")
    return 0 if held == tried else 1


def interleave(found: list[Statement]) -> list[Statement]:
    """Order statements so that the first of every group come first, then the second ones."""
    groups: dict[str, list[Statement]] = {}
    for statement in found:
        groups.setdefault(statement.name.partition("-")[0], []).append(statement)
    rounds = zip_longest(*(sorted(group, key=lambda each: each.name) for group in groups.values()))
    return [statement for each in rounds for statement in each if statement is not None]


def measure(copy: Path, tests: dict[str, list[str]]) -> Measured:
    """Return the lines that the tests reach; measured anew if the code or its tests changed."""
    files = sorted(path for root in ("src", "tests") for path in (TOP / root).rglob("*.py"))
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    kept = CACHE / "statements.json"
    if kept.is_file():
        measured = Measured(**json.loads(kept.read_text(encoding="utf-8")))
        if measured.key == key:
            return measured
    names = sorted({f"tests/{test}" for each in tests.values() for test in each})
    measured = measure_tests(copy, [SOURCE], names, key)
    kept.write_text(json.dumps(asdict(measured)), encoding="utf-8")
    return measured


def list_statements(measured: Measured, tests: dict[str, list[str]]) -> list[Statement]:
    """Return the statements with the tests that passed and the lines they reach."""
    reached: dict[str, set[Line]] = {}
    for path, lines in measured.lines.items():
        for line, names in lines.items():
            for name in names:
                reached.setdefault(name, set()).add((path, int(line)))
    places, says = built(), statements()
    found: list[Statement] = []
    for name, proving in tests.items():
        starts = tuple(f"tests/{test}" for test in proving)
        passed = [
            test
            for test in sorted(measured.seconds, key=lambda test: (measured.seconds[test], test))
            if test.partition("[")[0] in starts or test.startswith(tuple(f"{s}::" for s in starts))
        ]
        files = frozenset(file for place in places[name] for file in find_files(place))
        own = frozenset(line for test in passed for line in reached.get(test, ()))
        chosen = tuple(within_seconds(passed, measured))
        found.append(Statement(name, says[name], files, chosen, own))
    return found


def within_seconds(tests: list[str], measured: Measured) -> Iterator[str]:
    left = MOST_SECONDS
    for test in tests:
        left -= measured.seconds[test]
        if left > 0 or test == tests[0]:
            yield test


@cache
def find_files(place: str) -> tuple[str, ...]:
    path = TOP / place
    found = path.rglob("*") if path.is_dir() else (path,)
    names = (str(file.relative_to(TOP)) for file in found if file.is_file())
    return tuple(name for name in names if name.endswith(".py") or name.startswith(TEXTS))


def list_changes(
    statement: Statement, shared: Counter[Line], chance: random.Random, count: int
) -> list[Mutant]:
    """Return changes to the code of a statement, a line each; half of them to its texts, if any."""
    lines = sorted(statement.lines)
    chance.shuffle(lines)
    code = (
        change
        for path, line in sorted(lines, key=lambda at: (at[0] not in statement.files, shared[at]))
        if (change := change_line(path, line, chance)) is not None
    )
    texts = list(change_texts(statement))[: count // 2]
    return [*texts, *(change for change, _ in zip(code, range(count - len(texts)), strict=False))]


def change_texts(statement: Statement) -> Iterator[Mutant]:
    """Remove lines of texts, those that have the most words in common with the statement first."""
    wanted = find_words(statement.says)
    rows = [
        (len(wanted & find_words(text)), path, number, text)
        for path in sorted(statement.files)
        if path.startswith(TEXTS)
        for number, text in enumerate((TOP / path).read_text(encoding="utf-8").split("\n"), 1)
    ]
    for common, path, number, text in sorted(rows, key=lambda row: -row[0]):
        if common > 1:
            yield Mutant(path, number, "RemoveText", text, "")


def find_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def change_line(path: str, line: int, chance: random.Random) -> Mutant | None:
    """Return one change to a line of code: without its statement, else one of cosmic-ray's."""
    source = (TOP / path).read_text(encoding="utf-8")
    before = source.split("\n")[line - 1]
    if (after := remove_statement(path, source, line)) and after != before:
        return Mutant(path, line, "RemoveStatement", before, after)
    mutations = list_operators(path).get(line, ())
    made = (make_mutant(path, line, each) for each in chance.sample(mutations, len(mutations)))
    return next((mutant for mutant in made if mutant is not None), None)


def remove_statement(path: str, source: str, line: int) -> str:
    """Return the line without the call or result that is its whole statement; else nothing."""
    for node in parse(path, source).get(line, ()):
        indent = " " * node.col_offset
        if isinstance(node, ast.Return) and node.value is not None:
            return f"{indent}return {contradict(node.value)}"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            return f"{indent}pass"
    return ""


def contradict(value: ast.expr) -> str:
    """Return an expression for another result than this one."""
    if isinstance(value, ast.Constant):
        other = {True: "False", False: "True", "": "'changed'"}.get(value.value, "None")
        return other if isinstance(value.value, bool | str) else "None"
    if isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp):
        return f"not ({ast.unparse(value)})"
    return "None"


@cache
def parse(path: str, source: str) -> dict[int, list[ast.stmt]]:
    """Return the statements of a file that take one line."""
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno == node.end_lineno:
            found.setdefault(node.lineno, []).append(node)
    return found


@cache
def list_operators(path: str) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = {}
    for line, mutation in list_mutations(path):
        found.setdefault(line, []).append(mutation)
    return found


if __name__ == "__main__":
    sys.exit(main())
