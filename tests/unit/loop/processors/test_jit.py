"""The conditions of instructions that are given while a run goes on."""

import pytest

from loopkit import drained, make_run
from trimtab.loop.processors.jit import (
    JitEntry,
    JitFacts,
    JitInstructions,
    JitPorts,
    JitRules,
    PythonText,
    holds,
)

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


async def test_an_instruction_that_fails_is_left_out_and_the_others_are_given() -> None:
    async def call(name: str, facts: JitFacts) -> str:
        if name == "bad.py:text":
            raise RuntimeError("boom")
        return "Mind the gap."

    async def has_changes() -> bool:
        return False

    entries = [
        (name, JitEntry(instruction=PythonText(python=f"{name}.py:text")))
        for name in ("bad", "good")
    ]
    ports = JitPorts(gather=lambda _: FACTS, sent=lambda: (), has_changes=has_changes, call=call)
    run = make_run([{"text": "Done."}], "go", processors=[JitInstructions(entries, ports)])
    session = await drained(run)
    assert [said.content for said in session.of("user.message")] == ["go", "Mind the gap."]
    (warning,) = session.of("session.warning")
    assert "bad is left out: RuntimeError: boom" in warning.message
