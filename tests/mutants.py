"""Mutation tests: change one place of the code at a time, and list the changes no test notices.

    python tests/mutants.py [PACKAGE …] [--sample N] [--seed N]

Each package gets a random sample of mutants, made by cosmic-ray's operators in a copy of the
tree. A mutant is tried by the tests that reach its line, in this process or in the program they
start: a run of the suite under coverage finds them. At most `MOST_TESTS` of them are tried, after
the unit tests of the package, so the share of survivors is an upper bound. `tests/mutants.toml` names survivors that change nothing
a test could see, with the reason; they are not made again.
"""

import argparse
import ast
import hashlib
import json
import os
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
from dataclasses import asdict, dataclass, field
from pathlib import Path

TOP = Path(__file__).parents[1]
CACHE = TOP / ".mutants"
SOURCE = "src/trimtab/"
PACKAGES = {
    "session": ("session",),
    "loop": ("loop",),
    "permissions": ("permissions",),
    "undo": ("undo",),
    "budget": (
        "loop/ledger.py",
        "loop/processors/budget.py",
        "loop/processors/turn_limit.py",
        "loop/processors/progress.py",
        "models/limits.py",
    ),
}
MOST_TESTS = 160
MOST_OWN = 400
TIMEOUT = 240.0
IGNORED_OPERATORS = re.compile(r"NoOp|RemoveDecorator|Variable|ExceptionReplacer")


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
class Reached:
    """The tests that reach each line, as numbers in the list of all tests."""

    tests: list[str]
    digests: dict[str, str] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)


def main() -> int:
    """Try the mutants and print the survivors; exit with 1 if more than a tenth survive."""
    parser = argparse.ArgumentParser(description="Change the code and see whether tests notice.")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other mutants")
    parser.add_argument("--measure", action="store_true", help="find anew which tests reach what")
    args = parser.parse_args()
    unknown = set(args.packages) - set(PACKAGES)
    if unknown:
        parser.error(f"unknown package {', '.join(unknown)}; use {', '.join(PACKAGES)}")
    copies = [make_copy(CACHE / f"copy-{number}") for number in range(2)]
    reached = find_tests(copies[0], measure=args.measure)
    worst = 0.0
    for package in args.packages:
        mutants = choose(package, args.sample, args.seed)
        with ThreadPoolExecutor(len(copies)) as pool:
            tried = [
                pool.submit(try_all, copy, mutants[number :: len(copies)], reached)
                for number, copy in enumerate(copies)
            ]
            survivors = [mutant for share in tried for mutant in share.result()]
        share = len(survivors) / max(len(mutants), 1)
        worst = max(worst, share)
        print(f"{package}: {len(survivors)} of {len(mutants)} survived ({share:.0%})")
        for mutant in survivors:
            print(f"  {mutant.path}:{mutant.line} {mutant.operator}")
            print(f"    - {mutant.before.strip()}\n    + {mutant.after.strip()}", flush=True)
    return 1 if worst > 0.1 else 0


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


def find_tests(copy: Path, *, measure: bool) -> Reached:
    """Return the tests that reach each line; measured once, or anew if asked for."""
    kept = CACHE / "reached.json"
    if measure or not kept.is_file():
        kept.write_text(json.dumps(asdict(measure_tests(copy))), encoding="utf-8")
    return Reached(**json.loads(kept.read_text(encoding="utf-8")))


def measure_tests(copy: Path) -> Reached:
    """Run the suite under coverage."""
    environment = copy / ".venv"
    (environment / "running").mkdir()
    roots = sorted({name.split("/")[0] for names in PACKAGES.values() for name in names})
    (environment / "coverage.ini").write_text(
        f"[run]\ndata_file = {environment}/data\nsource = "
        + ",".join(f"{copy}/{SOURCE}{root}" for root in roots)
        + "\n",
        encoding="utf-8",
    )
    measure = ["--cov", f"--cov-config={environment}/coverage.ini", "--cov-context=test"]
    run_tests(copy, ["-n", "2", "--cov-report=", *measure, "-m", "not slow"], timeout=7200)
    shutil.rmtree(environment / "running")
    command = [environment / "bin/python", "-m", "coverage", "combine", "-q", "--append"]
    ini = f"--rcfile={environment}/coverage.ini"
    subprocess.run([*map(str, command), ini, str(environment)], check=False)
    return read_tests(copy, environment / "data")


def read_tests(copy: Path, data: Path) -> Reached:
    """Return the tests by file and line. A report of coverage's own would take gigabytes."""
    from coverage import CoverageData

    measured = CoverageData(str(data))
    measured.read()
    names = sorted({context.partition("|")[0] for context in measured.measured_contexts()} - {""})
    numbers = {name: number for number, name in enumerate(names)}
    reached = Reached(names)
    for file in measured.measured_files():
        path = str(Path(file).relative_to(copy))
        reached.digests[path] = digest(Path(file))
        reached.lines[path] = {
            str(line): [
                numbers[name]
                for name in prefer({context.partition("|")[0] for context in contexts} - {""}, path)
            ]
            for line, contexts in measured.contexts_by_lineno(file).items()
        }
    return reached


def prefer(tests: Iterable[str], path: str) -> list[str]:
    """Return the tests to try: half from the file's own package, half from anywhere."""
    unit = f"tests/unit/{path.removeprefix(SOURCE).partition('/')[0]}/"
    mixed = sorted(tests)
    random.Random(path).shuffle(mixed)
    own = [test for test in mixed if test.startswith(unit)][: MOST_TESTS // 2]
    others = [test for test in mixed if not test.startswith(unit)]
    return [*own, *others[: MOST_TESTS - len(own)]]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def list_tests(reached: Reached, mutant: Mutant) -> list[str]:
    """Return the unit tests of the package that reach the file, and then those of the line.

    A line of the module itself is reached by whatever imports it first, so the line alone does not
    say which tests depend on it. If the file has changed since, its tests are taken for the line's.
    """
    lines = reached.lines.get(mutant.path, {})
    of_file = {reached.tests[number] for numbers in lines.values() for number in numbers}
    unit = f"tests/unit/{mutant.path.removeprefix(SOURCE).partition('/')[0]}/"
    own = sorted(test for test in of_file if test.startswith(unit))[:MOST_OWN]
    of_line = prefer(of_file, mutant.path)
    if reached.digests.get(mutant.path) == digest(TOP / mutant.path):
        of_line = [reached.tests[number] for number in lines.get(str(mutant.line), ())]
    return list(dict.fromkeys((*own, *of_line)))


def choose(package: str, count: int, seed: int) -> list[Mutant]:
    """Choose lines at random, then one mutant of each."""
    listed = tomllib.loads((TOP / "tests/mutants.toml").read_text(encoding="utf-8"))
    equivalent = {entry["mutant"] for entry in listed["equivalent"]}
    chance = random.Random(seed)
    lines: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for path in find_files(package):
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
    others = {name for key, names in PACKAGES.items() if key != package for name in names}
    for name in PACKAGES[package]:
        root = TOP / SOURCE / name
        for path in sorted(root.rglob("*.py")) if root.is_dir() else (root,):
            if str(path.relative_to(TOP / SOURCE)) not in others:
                yield str(path.relative_to(TOP))


def list_mutations(path: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """List lines, operators and occurrences, without annotations and the like."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    source = (TOP / path).read_text(encoding="utf-8")
    tree, skipped = get_ast(source), find_annotations(source)
    for operator_name in operator_names():
        operator_class = get_operator(operator_name)
        if IGNORED_OPERATORS.search(operator_name) or operator_class.arguments():
            continue
        operator = operator_class()
        positions = (
            start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)
        )
        for occurrence, start in enumerate(positions):
            if not any(begin <= tuple(start) < end for begin, end in skipped):
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
    try:
        with warnings.catch_warnings(action="error"):
            compile("\n".join(after), path, "exec")
    except (SyntaxError, SyntaxWarning):
        return None
    name = mutation[0].partition("/")[2]
    return Mutant(path, line, name, before[line - 1], after[line - 1])


def find_annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the places of annotations, assertions and options of classes."""
    places: list[ast.AST] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            places.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            places.append(node.returns)
        elif isinstance(node, ast.Assert):
            places.append(node)
        elif isinstance(node, ast.ClassDef):
            places.extend(keyword.value for keyword in node.keywords)
    return [
        ((place.lineno, place.col_offset), (place.end_lineno or 0, place.end_col_offset or 0))
        for place in places
        if isinstance(place, ast.expr | ast.stmt)
    ]


def try_all(copy: Path, mutants: list[Mutant], reached: Reached) -> list[Mutant]:
    """Return the mutants that no test notices."""
    return [mutant for mutant in mutants if not is_noticed(copy, mutant, reached)]


def is_noticed(copy: Path, mutant: Mutant, reached: Reached) -> bool:
    tests = list_tests(reached, mutant)
    if not tests:
        return False
    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    changed = source.split("\n")
    changed[mutant.line - 1] = mutant.after
    target.write_text("\n".join(changed), encoding="utf-8")
    try:
        return run_tests(copy, ["-n", "0", "-x", *tests], timeout=TIMEOUT) != 0
    finally:
        target.write_text(source, encoding="utf-8")


def run_tests(copy: Path, arguments: list[str], timeout: float) -> int:
    """Run pytest in the copy and return its exit code, or -1 if it took too long."""
    python = copy / ".venv/bin/python"
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "mutants",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    # A changed file of the same size and second would be taken from the cache.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "tests"}
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
