"""The time that is left, the outcome of checks, and the conditions of instructions."""

import pytest

from trimtab.loop.checks import Checks
from trimtab.loop.processors.jit import JitEntry, JitFacts, JitRules, holds
from trimtab.loop.time_limit import TimeLimit


@pytest.mark.parametrize(
    ("seconds", "last_words"), [(1, 0.5), (10, 2), (100, 10), (600, 60), (7200, 60)]
)
def test_a_tenth_of_the_time_is_for_last_words(seconds: float, last_words: float) -> None:
    assert TimeLimit(seconds).last_words == last_words


def test_the_time_that_is_left_is_a_share_of_the_whole() -> None:
    now = [100.0]
    limit = TimeLimit(50, clock=lambda: now[0])
    assert (limit.left, limit.share_left) == (50, 1.0)
    now[0] = 140.0
    assert (limit.left, limit.share_left) == (10, 0.2)
    now[0] = 200.0
    assert (limit.left, limit.share_left) == (-50, 0.0)


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


FACTS = JitFacts(location="/", turns=3, time_left=0.2, context=0.5, budget=None, checks="red")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (JitEntry(instruction="x"), True),
        (JitEntry(instruction="x", percent_remaining_of_timeout=20), True),
        (JitEntry(instruction="x", percent_remaining_of_timeout=19), False),
        (JitEntry(instruction="x", when=JitRules(turns=3)), True),
        (JitEntry(instruction="x", when=JitRules(turns=4)), False),
        (JitEntry(instruction="x", when=JitRules(context=50)), True),
        (JitEntry(instruction="x", when=JitRules(context=51)), False),
        (JitEntry(instruction="x", when=JitRules(budget=0)), False),
        (JitEntry(instruction="x", when=JitRules(checks="red")), True),
        (JitEntry(instruction="x", when=JitRules(turns=3, checks="green")), False),
    ],
)
def test_all_conditions_that_are_set_must_hold(entry: JitEntry, wanted: bool) -> None:
    assert holds(entry, FACTS) is wanted
