"""Which statements of requirements.toml are proven by a test, decided otherwise, or open."""

import ast
import sys
import tomllib
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
DECISIONS = TESTS.parent / "docs" / "decisions"
OPEN = TESTS / "open-statements.txt"


def entries() -> dict[str, dict[str, Any]]:
    """Id → its entry, in the order of the file."""
    found = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
    return {
        name: entry
        for group in found.values()
        for name, entry in group.items()
        if isinstance(entry, dict)
    }


def groups() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Group → its title, and the paths where it is built."""
    found = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
    return {name: (str(group["title"]), tuple(group["built"])) for name, group in found.items()}


def built() -> dict[str, tuple[str, ...]]:
    """Id → the paths where it is built: its own, else those of its group."""
    usual = groups()
    return {
        name: tuple(entry["built"]) if "built" in entry else usual[name.partition("-")[0]][1]
        for name, entry in entries().items()
    }


def statements() -> dict[str, str]:
    """Id → sentence, in the order of the file."""
    return {name: entry["says"] for name, entry in entries().items()}


def decided() -> dict[str, Path]:
    """Id → the decision record that says why the statement is not to be made true as it stands."""
    return {
        name: DECISIONS / f"{entry['decided']}.md"
        for name, entry in entries().items()
        if "decided" in entry
    }


def proven() -> dict[str, list[str]]:
    """Id → tests that name it in a `proves` mark."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.proves":
                    for argument in mark.args:
                        assert isinstance(argument, ast.Constant), f"{path}: ids must be literals"
                        where = f"{path.relative_to(TESTS)}::{node.name}"
                        found.setdefault(str(argument.value), []).append(where)
    return found


def declared_open() -> set[str]:
    lines = OPEN.read_text(encoding="utf-8").split("\n")
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def write_open() -> None:
    settled = proven().keys() | decided().keys()
    still_open = [name for name in statements() if name not in settled]
    header = (
        "# Statements no test proves yet. `python tests/requirements.py --write` refreshes this.\n"
    )
    OPEN.write_text(header + "".join(f"{name}\n" for name in still_open), encoding="utf-8")


def report() -> str:
    done, ruled = proven(), decided()
    by_group: dict[str, list[str]] = {}
    for name in statements():
        by_group.setdefault(name.split("-")[0], []).append(name)
    rows = [f"{'group':<10} {'proven':>6} {'decided':>7} {'open':>5}"]
    total = [0, 0, 0]
    for group, names in by_group.items():
        counts = [
            sum(name in done for name in names),
            sum(name in ruled for name in names),
            sum(name not in done and name not in ruled for name in names),
        ]
        total = [before + more for before, more in zip(total, counts, strict=True)]
        rows.append(f"{group:<10} {counts[0]:>6} {counts[1]:>7} {counts[2]:>5}")
    rows.append(f"{'all':<10} {total[0]:>6} {total[1]:>7} {total[2]:>5}")
    rows.append(
        f"{sum(total)} statements = {total[0]} proven + {total[1]} decided + {total[2]} open"
    )
    return "\n".join(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_open()
    print(report())
