"""Mutation tests: change one place of the code at a time, and list the changes no test notices.

    python tests/mutants.py [PACKAGE …] [--sample N] [--seed N] [--file PATH] [--jobs N]

Each package gets a random sample of mutants, made by cosmic-ray's operators in a copy of the
tree. The same seed over the same code gives the same mutants. A mutant is tried by the tests that
reach its statement, in this process or in the program they start. A run under coverage of all unit
tests and of the files that `PACKAGES` names finds them; what it found of a file of tests is kept
until that file or the packages change. The tests written for the package come first, then all
others, the shortest first, each group up to `MOST_SECONDS`, so the share of survivors is an upper
bound. `tests/mutants.toml` names survivors that change nothing a test could see, with the reason;
they are not made again. Many tests wait for the disk: with TMPDIR in memory (not below /dev, where
tools refuse to write) a run takes a fraction of the time.
"""

import argparse
import ast
import hashlib
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TOP = Path(__file__).parents[1]
CACHE = TOP / ".mutants"
SOURCE = "src/trimtab/"


class Package(NamedTuple):
    """Code to change, and the tests that are tried first, both below their folders."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


PACKAGES = {
    "session": Package(
        ("session",),
        (
            "unit/session",
            "behaviour/test_sessions_command.py",
            "behaviour/test_odd_logs.py",
            "behaviour/test_tools_session.py",
            "unit/tools/test_session_store_sql.py",
        ),
    ),
    "loop": Package(
        ("loop",),
        (
            "unit/loop",
            "behaviour/test_loop_contract.py",
            "behaviour/test_autopilot_and_retries.py",
            "behaviour/test_compaction_run.py",
            "behaviour/test_compaction_settings.py",
            "behaviour/test_cut_replies.py",
            "behaviour/test_customize_skills.py",
            "behaviour/test_slash_commands.py",
            "behaviour/test_unattended.py",
        ),
    ),
    "permissions": Package(
        ("permissions",),
        (
            "unit/permissions",
            "unit/policy",
            "behaviour/test_permissions_run.py",
            "behaviour/test_permissions_command.py",
            "behaviour/test_explained_decisions.py",
            "behaviour/test_fenced_commands.py",
            "behaviour/test_sandbox_run.py",
        ),
    ),
    "undo": Package(
        ("undo",),
        (
            "unit/undo",
            "behaviour/test_undo.py",
            "behaviour/test_undo_repositories.py",
            "behaviour/test_changes_beside_calls.py",
            "behaviour/test_background_changes.py",
        ),
    ),
    "budget": Package(
        (
            "loop/ledger.py",
            "loop/processors/budget.py",
            "loop/processors/turn_limit.py",
            "loop/processors/progress.py",
            "models/limits.py",
        ),
        (
            "unit/loop",
            "unit/models",
            "behaviour/test_autopilot_and_retries.py",
            "behaviour/test_limits_switch.py",
        ),
    ),
}
MOST_SECONDS = 60.0
MOST_OF_FILE = 12
"""Tests of one file, for a line of the code, that are not of the package: the shortest."""
IGNORED_OPERATORS = re.compile(
    r"NoOp|RemoveDecorator|Variable|ExceptionReplacer|Eq_Is|NotEq_IsNot|BitOr_(BitXor|Add)"
)
"""Operators that change nothing here: equal numbers and short strings are one object in CPython,
and flags of the operating system have no bit in common."""
ORDER = re.compile(r"Operator_(Not)?Eq_[LG]tE?$")
NUMBER = re.compile(r"NumberReplacer$")
MARK = r"(?<![^\s(])\*,"
"""The mark before named arguments, which is no product."""
LARGE = 32
"""A number from here on is a size or a limit, which breaks no promise if it differs by one."""
Place = tuple[tuple[int, int], tuple[int, int]]
"""Line and column of the first character, and of the one after the last."""


@dataclass(frozen=True)
class Mutant:
    """One change to one file."""

    path: str
    line: int
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path}: {self.before.strip()} -> {self.after.strip()}"


@dataclass
class Measured:
    """Seconds of each test that passed, and which of them reach which line of which file."""

    key: str
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def main() -> int:
    """Try the mutants and print the survivors; exit with 1 if more than a tenth survive."""
    parser = argparse.ArgumentParser(description="Change the code and see whether tests notice.")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other mutants")
    parser.add_argument("--file", default="", help="only mutants of files whose path has this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at the same time")
    args = parser.parse_args()
    unknown = set(args.packages) - set(PACKAGES)
    if unknown:
        parser.error(f"unknown package {', '.join(unknown)}; use {', '.join(PACKAGES)}")
    copies = [make_copy(CACHE / f"copy-{number}") for number in range(args.jobs)]
    measured = find_tests(copies[0])
    worst = 0.0
    for package in args.packages:
        mutants = choose(package, args.sample, args.seed, args.file)
        survivors = try_mutants(copies, package, mutants, measured)
        share = survivors / max(len(mutants), 1)
        worst = max(worst, share)
        print(f"{package}: {survivors} of {len(mutants)} survived ({share:.0%})", flush=True)
    return 1 if worst > 0.1 else 0


def try_mutants(copies: list[Path], package: str, mutants: list[Mutant], measured: Measured) -> int:
    """Try each mutant in a copy that is free, print the survivors and return their number."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def survives(mutant: Mutant) -> bool:
        own, others = list_tests(measured, mutant, package)
        copy = free.get()
        try:
            return not (is_noticed(copy, mutant, own) or is_noticed(copy, mutant, others))
        finally:
            free.put(copy)

    survivors = 0
    with ThreadPoolExecutor(len(copies)) as pool:
        for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True):
            if survived:
                survivors += 1
                print(f"  {mutant.path}:{mutant.line} {mutant.operator}")
                print(f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}", flush=True)
    return survivors


def make_copy(folder: Path) -> Path:
    """Copy the tracked files, and make an environment in which the copy is the installed one."""
    shutil.rmtree(folder, ignore_errors=True)
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=TOP, capture_output=True, check=True
    )
    for name in names.stdout.decode().rstrip("\0").split("\0"):
        if (TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, folder / name)
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    paths = (folder / "src", sysconfig.get_path("purelib"))
    (packages / "copy.pth").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    (packages / "measure.pth").write_text("import measure_child\n", encoding="utf-8")
    (packages / "measure_child.py").write_text(MEASURE_CHILD, encoding="utf-8")
    program = environment / "bin" / "trimtab"
    program.write_text(
        f"#!{environment}/bin/python\nfrom trimtab.__main__ import main\nraise SystemExit(main())\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    for tool in Path(sys.executable).parent.iterdir():
        if not (environment / "bin" / tool.name).exists():
            (environment / "bin" / tool.name).symlink_to(tool)
    # Compiled files are checked by content: a change may keep a file's size and second.
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode=checked-hash", "src"],
        cwd=folder,
        check=True,
    )
    return folder


# A program that a test starts finds the test by the process numbers of its ancestors: the
# environment of most tests holds nothing but what they need.
MEASURE_CHILD = """
import os, sys
def _measure():
    running, pid = os.path.join(sys.prefix, "running"), os.getpid()
    if not os.path.isdir(running):
        return
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                pid = int(stat.read().rpartition(")")[2].split()[1])
            with open(os.path.join(running, str(pid))) as test:
                context = test.read()
            break
        except FileNotFoundError:
            continue
    else:
        return
    import atexit, coverage
    measured = coverage.Coverage(
        config_file=os.path.join(sys.prefix, "coverage.ini"), context=context, data_suffix=True
    )
    measured.start()
    atexit.register(lambda: (measured.stop(), measured.save()))
_measure()
"""


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the test that this process runs, for the programs it starts."""
    running = Path(sys.prefix) / "running"
    if running.is_dir():
        (running / str(os.getpid())).write_text(nodeid, encoding="utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took that passed."""
    running = Path(sys.prefix) / "running"
    if running.is_dir() and report.when == "call" and report.passed:
        line = json.dumps([report.nodeid, report.duration])
        with (running / "seconds").open("a", encoding="utf-8") as seconds:
            seconds.write(f"{line}\n")


def find_tests(copy: Path) -> Measured:
    """Return the tests that reach each line, measuring those of files that changed."""
    roots = sorted({name.split("/")[0] for value in PACKAGES.values() for name in value.files})
    roots = [f"{SOURCE}{root}" for root in roots]
    sources = hash_files(file for root in roots for file in sorted(list_files(TOP / root)))
    kept = CACHE / "reached.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    files = {
        str(file.relative_to(TOP)): hash_files([file], sources)
        for file in sorted({*list_files(TOP / "tests/unit"), *list_named_tests()})
        if file.name.startswith("test_")
    }
    known = {name: entry for name, entry in known.items() if entry["key"] == files.get(name)}
    changed = [name for name in files if name not in known]
    if changed:
        measured = measure_tests(copy, roots, changed, sources)
        known |= {name: pack(measured, name, files[name]) for name in changed}
        kept.write_text(json.dumps(known), encoding="utf-8")
    return unpack(known)


def list_named_tests() -> Iterator[Path]:
    for package in PACKAGES.values():
        for name in package.tests:
            yield from list_files(TOP / "tests" / name)


def hash_files(files: Iterable[Path], before: str = "") -> str:
    digest = hashlib.sha256(before.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def pack(measured: Measured, name: str, key: str) -> dict[str, Any]:
    """Return what is known of one file of tests, with numbers instead of the tests' names."""
    tests = sorted(
        (test for test in measured.seconds if test.partition("::")[0] == name),
        key=lambda test: (measured.seconds[test], test),
    )
    numbers = {test: number for number, test in enumerate(tests)}
    own = name.removeprefix("tests/").startswith(
        tuple(own for package in PACKAGES.values() for own in package.tests)
    )
    lines = {
        path: {
            line: found if own else found[:MOST_OF_FILE]
            for line, reached in by_line.items()
            if (found := sorted(numbers[test] for test in reached if test in numbers))
        }
        for path, by_line in measured.lines.items()
    }
    return {
        "key": key,
        "tests": [[test, measured.seconds[test]] for test in tests],
        "lines": {path: by_line for path, by_line in lines.items() if by_line},
    }


def unpack(known: dict[str, Any]) -> Measured:
    """Put together what is known of all files of tests."""
    measured = Measured("")
    for entry in known.values():
        names = [test for test, _ in entry["tests"]]
        measured.seconds.update(entry["tests"])
        for path, by_line in entry["lines"].items():
            lines = measured.lines.setdefault(path, {})
            for line, numbers in by_line.items():
                lines.setdefault(line, []).extend(names[number] for number in numbers)
    return measured


def list_files(path: Path) -> Iterator[Path]:
    yield from path.rglob("*.py") if path.is_dir() else (path,)


def measure_tests(copy: Path, roots: list[str], tests: list[str], key: str) -> Measured:
    """Run tests under coverage of the folders `roots`."""
    environment = copy / ".venv"
    running = environment / "running"
    running.mkdir()
    source = ",".join(f"{copy}/{root}" for root in roots)
    (environment / "coverage.ini").write_text(
        f"[run]\ndata_file = {environment}/data\nsource = {source}\n", encoding="utf-8"
    )
    measure = ["--cov", f"--cov-config={environment}/coverage.ini", "--cov-context=test"]
    workers = ["-n", "3", "--dist", "worksteal", "-m", "not slow and not foreign"]
    run_tests(copy, [*measure, "--cov-report=", *workers, *tests], timeout=7200)
    lines = (running / "seconds").read_text(encoding="utf-8").splitlines()
    seconds = dict(json.loads(line) for line in lines)
    shutil.rmtree(running)
    command = [environment / "bin/python", "-m", "coverage", "combine", "-q", "--append"]
    ini = f"--rcfile={environment}/coverage.ini"
    subprocess.run([*map(str, command), ini, str(environment)], check=False)
    return read_lines(copy, Measured(key, seconds))


def read_lines(copy: Path, measured: Measured) -> Measured:
    """Add the tests by file and line. A report of coverage's own would take gigabytes."""
    from coverage import CoverageData

    data = CoverageData(str(copy / ".venv/data"))
    data.read()
    for file in data.measured_files():
        measured.lines[str(Path(file).relative_to(copy))] = {
            str(line): sorted(
                {re.sub(r"\|(setup|run|teardown)$", "", context) for context in contexts}
                & measured.seconds.keys()
            )
            for line, contexts in data.contexts_by_lineno(file).items()
        }
    (copy / ".venv/data").unlink()
    return measured


def list_tests(measured: Measured, mutant: Mutant, package: str) -> tuple[list[str], list[str]]:
    """Return the tests of the mutant's statement: those of the package, and all others.

    A statement of the module itself is executed by whichever test imports it first, so all tests
    that reach the file are taken for it.
    """
    lines = measured.lines.get(mutant.path, {})
    first, last = find_statement((TOP / mutant.path).read_text(encoding="utf-8"), mutant.line)
    tests = {
        test
        for line, reached in lines.items()
        if not first or first <= int(line) <= last
        for test in reached
    }
    own = {
        test for test in tests if test.removeprefix("tests/").startswith(PACKAGES[package].tests)
    }
    return take_shortest(own, measured), take_shortest(tests - own, measured)


def take_shortest(tests: set[str], measured: Measured) -> list[str]:
    """Return the shortest tests that take `MOST_SECONDS` together."""
    chosen: list[str] = []
    left = MOST_SECONDS
    for test in sorted(tests, key=lambda test: (measured.seconds[test], test)):
        left -= measured.seconds[test]
        if left < 0:
            break
        chosen.append(test)
    return chosen


def find_statement(source: str, line: int) -> tuple[int, int]:
    """Return the lines of the statement inside a function; (0, 0) for one outside."""
    statements = [
        node
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.stmt)
        and node is not function
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return 0, 0
    statement = max(statements, key=lambda node: node.lineno)
    body = getattr(statement, "body", None)
    last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno or line
    return (statement.lineno, last) if line <= last else (line, line)


def choose(package: str, count: int, seed: int, part: str) -> list[Mutant]:
    """Choose lines at random, then one mutant of each."""
    listed = tomllib.loads((TOP / "tests/mutants.toml").read_text(encoding="utf-8"))
    equivalent = {entry["mutant"] for entry in listed["equivalent"]}
    chance = random.Random(seed)
    lines: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for path in find_files(package):
        if part not in path:
            continue
        for line, mutation in list_mutations(path):
            lines.setdefault((path, line), []).append(mutation)
    chosen: list[Mutant] = []
    for path, line in chance.sample(sorted(lines), len(lines)):
        mutant = make_mutant(path, line, chance.choice(lines[path, line]))
        if mutant is not None and mutant.name not in equivalent:
            chosen.append(mutant)
        if len(chosen) == count:
            break
    return chosen


def find_files(package: str) -> Iterator[str]:
    others = {name for key, value in PACKAGES.items() if key != package for name in value.files}
    for name in PACKAGES[package].files:
        for path in sorted(list_files(TOP / SOURCE / name)):
            if str(path.relative_to(TOP / SOURCE)) not in others:
                yield str(path.relative_to(TOP))


def list_mutations(path: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """List lines, operators and occurrences, without annotations and the like."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = (TOP / path).read_text(encoding="utf-8")
    tree, skipped = get_ast(source), find_annotations(source)
    words, large = find_words(source), find_large_numbers(source)
    for operator_name in operator_names():
        operator_class = get_operator(operator_name)
        if IGNORED_OPERATORS.search(operator_name) or operator_class.arguments():
            continue
        operator = operator_class()
        positions = (
            start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)
        )
        left_alone = skipped + (words if ORDER.search(operator_name) else [])
        left_alone += large if NUMBER.search(operator_name) else []
        for occurrence, start in enumerate(positions):
            if not any(begin <= tuple(start) < end for begin, end in left_alone):
                yield start[0], (operator_name, occurrence)


def make_mutant(path: str, line: int, mutation: tuple[str, int]) -> Mutant | None:
    """Return the mutant; None if it changes more than this line, or cannot be compiled."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (TOP / path).read_text(encoding="utf-8")
    changed = mutate_code(source, get_operator(mutation[0])(), mutation[1])
    before, after = source.split("\n"), (changed or "").split("\n")
    if len(after) != len(before) or after[line - 1] == before[line - 1]:
        return None
    if re.sub(MARK, "/,", before[line - 1]) == after[line - 1]:
        return None
    try:
        with warnings.catch_warnings(action="error"):
            compile("\n".join(after), path, "exec")
    except (SyntaxError, SyntaxWarning):
        return None
    name = mutation[0].partition("/")[2]
    return Mutant(path, line, name, before[line - 1], after[line - 1])


def find_annotations(source: str) -> list[Place]:
    """Return the places of annotations, imports for them, assertions, options of classes,
    decorators (a cache has a size) and constants that are numbers."""
    places: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            places.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            places.append(node.returns)
        elif isinstance(node, ast.Assert) or is_for_types(node) or is_number(node):
            places.append(node)
        elif isinstance(node, ast.ClassDef):
            places.extend(keyword.value for keyword in node.keywords)
        places.extend(getattr(node, "decorator_list", ()))
    return [find_place(place) for place in places if isinstance(place, ast.expr | ast.stmt)]


def find_words(source: str) -> list[Place]:
    """Return the places of comparisons with a word: which of two words comes first means nothing."""
    return [
        find_place(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Constant) and isinstance(side.value, str)
            for side in (node.left, *node.comparators)
        )
    ]


def find_large_numbers(source: str) -> list[Place]:
    return [
        find_place(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and abs(node.value) >= LARGE
    ]


def find_place(node: ast.expr | ast.stmt) -> Place:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def is_for_types(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def is_number(node: ast.AST) -> bool:
    """Return True for the definition of a constant by numbers."""
    return (
        isinstance(node, ast.Assign)
        and all(isinstance(name, ast.Name) and name.id.isupper() for name in node.targets)
        and all(
            isinstance(part, ast.Constant | ast.BinOp | ast.operator | ast.UnaryOp | ast.unaryop)
            for part in ast.walk(node.value)
        )
    )


def is_noticed(copy: Path, mutant: Mutant, tests: list[str]) -> bool:
    """Tell whether a test fails, or takes far longer than it should."""
    if not tests:
        return False
    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    changed = source.split("\n")
    changed[mutant.line - 1] = mutant.after
    target.write_text("\n".join(changed), encoding="utf-8")
    chosen = copy / ".venv/tests"
    chosen.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    try:
        arguments = ["-n", "0", "-x", f"@{chosen}"]
        return run_tests(copy, arguments, timeout=5 * MOST_SECONDS) != 0
    finally:
        target.write_text(source, encoding="utf-8")


def run_tests(copy: Path, arguments: list[str], timeout: float) -> int:
    """Run pytest in the copy and return its exit code, or -1 if it took too long."""
    command = [str(copy / ".venv/bin/python"), "-m", "pytest", "-q"]
    command += ["-p", "mutants", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": "tests"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return -1


if __name__ == "__main__":
    sys.exit(main())
