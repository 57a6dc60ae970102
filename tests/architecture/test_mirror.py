"""Unit tests mirror the source.

The unit tests of `src/trimtab/X/Y.py` are in `tests/unit/X/test_Y.py`; further files about the same
module begin with its name, as in `test_Y_damage.py`. The folder of a tool counts as a module.
`tests/unit/elsewhere.toml` names the tests of modules that have no such file.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trimtab"
UNIT = ROOT / "tests" / "unit"
ELSEWHERE: dict[str, list[str]] = tomllib.loads((UNIT / "elsewhere.toml").read_text())["tests"]
MODULES = sorted(
    path.relative_to(SOURCE)
    for path in SOURCE.rglob("*.py")
    if not path.name.startswith("__") and not path.is_relative_to(SOURCE / "cli/demo/project")
)


def has_own_tests(module: Path) -> bool:
    """Return True if a file of unit tests is named for a module, or for a tool's folder."""
    folder = UNIT / module.parent
    own = f"test_{module.stem}"
    if any(path.stem == own or path.stem.startswith(f"{own}_") for path in folder.glob("*.py")):
        return True
    tool = module.parent
    return tool.parent == Path("tools") and (UNIT / "tools" / f"test_{tool.name}.py").is_file()


def find_entry(module: Path) -> str | None:
    """Return the nearest key of the list above a module."""
    names = [str(module), *(str(parent) for parent in module.parents)]
    return next((name for name in names if name in ELSEWHERE), None)


def test_every_module_has_unit_tests_or_names_the_tests_that_exercise_it() -> None:
    without = [str(path) for path in MODULES if not has_own_tests(path) and not find_entry(path)]
    assert not without, (
        f"add unit tests, or name other tests in tests/unit/elsewhere.toml: {without}"
    )


def test_every_file_of_unit_tests_is_named_for_a_module() -> None:
    strays = []
    for path in UNIT.rglob("test_*.py"):
        folder, name = SOURCE / path.relative_to(UNIT).parent, path.stem.removeprefix("test_")
        names = {found.stem for found in folder.glob("*") if not found.name.startswith("__")}
        if not any(name == module or name.startswith(f"{module}_") for module in names):
            strays.append(str(path.relative_to(ROOT)))
    assert not strays, f"name these for the module they test: {strays}"


def test_every_entry_of_the_list_is_needed_and_names_tests_that_exist() -> None:
    used = {find_entry(path) for path in MODULES if not has_own_tests(path)}
    assert set(ELSEWHERE) <= used, f"not needed: {sorted(set(ELSEWHERE) - used)}"
    tests = {test for names in ELSEWHERE.values() for test in names}
    assert not [test for test in tests if not (ROOT / "tests" / test).is_file()]
