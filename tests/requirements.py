"""Which statements of requirements.toml are proven by a test, and which are open."""

import ast
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
OPEN = TESTS / "open-statements.txt"


def statements() -> dict[str, str]:
    """Id → sentence, in the order of the file."""
    groups = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))
    return {
        name: entry["says"]
        for group in groups.values()
        for name, entry in group.items()
        if isinstance(entry, dict)
    }


def proven() -> dict[str, list[str]]:
    """Id → tests that name it in a `proves` mark."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.proves":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{path}: ids must be literals"
                    where = f"{path.relative_to(TESTS)}:{node.lineno}"
                    found.setdefault(str(argument.value), []).append(where)
    return found


def declared_open() -> set[str]:
    lines = OPEN.read_text(encoding="utf-8").split("\n")
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def write_open() -> None:
    known, done = statements(), proven()
    still_open = [name for name in known if name not in done]
    header = (
        "# Statements no test proves yet. `python tests/requirements.py --write` refreshes this.\n"
    )
    OPEN.write_text(header + "".join(f"{name}\n" for name in still_open), encoding="utf-8")


def report() -> str:
    known, done = statements(), proven()
    groups: dict[str, list[str]] = {}
    for name in known:
        groups.setdefault(name.split("-")[0], []).append(name)
    rows = [f"{'group':<10} {'proven':>6} {'open':>5}"]
    for group, names in groups.items():
        count = sum(name in done for name in names)
        rows.append(f"{group:<10} {count:>6} {len(names) - count:>5}")
    total = sum(name in done for name in known)
    rows.append(f"{'all':<10} {total:>6} {len(known) - total:>5}")
    return "\n".join(rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_open()
    print(report())
