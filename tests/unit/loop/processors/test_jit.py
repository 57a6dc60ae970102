"""The conditions of instructions that are given while a run goes on."""

import pytest

from trimtab.loop.processors.jit import JitEntry, JitFacts, JitRules, holds

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
