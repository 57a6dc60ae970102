"""Checks: which commands count as one, and how long their outcome holds."""

import pytest

from trimtab.loop.checks import Checks


def state_of(checks: Checks) -> str:
    return checks.end_state


def test_a_check_counts_until_files_change_again() -> None:
    changes = [0]
    checks = Checks(("make test", "make lint"), lambda: changes[0])
    assert state_of(checks) == "unknown"
    checks.record(" make test ", 0)
    checks.record("make other", 1)
    assert checks.outcomes == {"make test": True, "make lint": None}
    checks.record("make lint", 1)
    assert state_of(checks) == "red"
    checks.record("make lint", 0)
    assert state_of(checks) == "green"
    changes[0] += 1
    assert state_of(checks) == "unknown"


@pytest.mark.parametrize(
    ("command", "same"),
    [
        ("pytest  -q   tests", True),
        ("  pytest -q tests\n", True),
        ("cd /srv/project && pytest -q tests", True),
        ("cd . && pytest -q tests", True),
        ("cd '/srv/project/' && pytest -q tests", True),
        ("cd src && pytest -q tests", False),
        ("cd /srv/project; pytest -q tests", False),
        ("pytest -q tests || true", False),
        ("pytest -q tests # all", False),
        ("pytest -q 'tests", False),
        ("echo pytest -q tests", False),
    ],
)
def test_a_check_is_recognised_in_other_spacing_and_in_its_folder(command: str, same: bool) -> None:
    checks = Checks(("pytest -q tests",), lambda: 0, "/srv/project")
    checks.record(command, 0)
    assert (checks.end_state == "green") is same


def test_operators_in_quotes_do_not_make_another_command_a_check() -> None:
    checks = Checks(("make && echo ok",), lambda: 0, "/")
    checks.record("make '&&' echo ok", 0)
    assert checks.end_state == "unknown"
    checks.record("make&&echo ok", 0)
    assert state_of(checks) == "green"
