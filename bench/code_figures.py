"""Figures of the code base: sizes, functions, imports, tests. `python bench/code_figures.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "trimtab", ROOT / "tests"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def list_files(folder: Path) -> list[Path]:
    demo = SOURCE / "cli" / "demo" / "project"
    return [path for path in sorted(folder.rglob("*.py")) if not path.is_relative_to(demo)]


def count_lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def find_functions(paths: list[Path]) -> Iterator[Function]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield node


def count_imports(node: ast.AST) -> int:
    return sum(isinstance(part, ast.Import | ast.ImportFrom) for part in ast.walk(node))


def count_modules(path: Path) -> int:
    """Return the number of modules that a module imports, for whatever purpose."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    named = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return len(named | plain)


def main() -> None:
    """Print one line a figure."""
    source, tests = list_files(SOURCE), list_files(TESTS)
    functions = list(find_functions(source))
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    long = sum(length > 60 for length in lengths) / len(lengths)
    short = sum(count_lines([path]) < 50 for path in source)
    inner = {id(part) for node in functions for part in ast.walk(node) if part is not node}
    late = sum(count_imports(node) for node in functions if id(node) not in inner)
    assembling = {
        name: count_modules(SOURCE / name)
        for name in ("agents/build.py", "agents/subagent.py", "runtime/runtime.py")
    }
    units = list((TESTS / "unit").rglob("test_*.py"))
    print(f"lines / files: {count_lines(source):,} / {len(source)}; under 50 lines: {short}")
    print(f"longest function: {max(lengths)}; over 60 lines: {long:.1%}")
    print(f"lines of test per line of code: {count_lines(tests) / count_lines(source):.2f}")
    print(f"imports of assembling modules: {assembling}")
    print(f"imports inside functions: {late}")
    print(f"modules of runtime/: {len(list_files(SOURCE / 'runtime')) - 1}")
    print(f"files of unit tests: {len(units)}")


if __name__ == "__main__":
    main()
