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
        (JitEntry(instruction="x", when=JitRules(turns=2)), True),
        (JitEntry(instruction="x", when=JitRules(checks="unknown")), False),
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


class Session:
    """Answers the questions of the processor, and notes its calls."""

    def __init__(self, *sent: str, changed: bool = False, **returns: object) -> None:
        self._sent, self._changed, self._returns = sent, changed, returns
        self.called: list[str] = []
        self.ports = JitPorts(
            gather=lambda _: FACTS, sent=lambda: self._sent, has_changes=self._look, call=self._call
        )

    async def _look(self) -> bool:
        return self._changed

    async def _call(self, name: str, facts: JitFacts) -> object:
        assert facts is FACTS
        self.called.append(name)
        return self._returns[name]

    async def told(self, *entries: JitEntry, closing: bool = False) -> list[str]:
        run = make_run([])
        run.closing, run.interaction_id = closing, "i1"
        named = [(f"entry {number}", entry) for number, entry in enumerate(entries)]
        assert await JitInstructions(named, self.ports).before_request(run) is None
        messages = run.session.of("user.message")  # type: ignore[attr-defined]
        for message in messages:
            assert (message.source, message.agent_mode) == ("jit-instruction", "interactive")
            assert message.interaction_id == "i1"
        return [message.content for message in messages]


async def test_an_instruction_that_was_told_before_is_not_told_again() -> None:
    entries = [JitEntry(instruction="old"), JitEntry(instruction="new")]
    assert await Session("old").told(*entries) == ["new"]


async def test_the_last_call_of_a_run_gets_no_instructions() -> None:
    assert await Session().told(JitEntry(instruction="x"), closing=True) == []


@pytest.mark.parametrize(("changed", "told"), [(True, []), (False, ["x"])])
async def test_an_instruction_may_wait_for_a_run_that_changes_nothing(
    changed: bool, told: list[str]
) -> None:
    entry = JitEntry(instruction="x", when_no_paths_changed=True)
    assert await Session(changed=changed).told(entry) == told


@pytest.mark.parametrize(("answer", "told"), [(True, ["x"]), (False, []), (None, [])])
async def test_a_function_may_decide(answer: object, told: list[str]) -> None:
    session = Session(when=answer)
    assert await session.told(JitEntry(instruction="x", when=JitRules(python="when"))) == told
    assert session.called == ["when"]


@pytest.mark.parametrize(("answer", "told"), [("text", ["text"]), (7, ["7"]), ("", []), (None, [])])
async def test_a_function_may_write_the_text(answer: object, told: list[str]) -> None:
    assert await Session(say=answer).told(JitEntry(instruction=PythonText(python="say"))) == told


async def test_a_text_of_a_function_is_told_once_as_well() -> None:
    entry = JitEntry(instruction=PythonText(python="say"))
    assert await Session("text", say="text").told(entry) == []


@pytest.mark.parametrize(
    ("budget", "share", "wanted"), [(0.5, 50, True), (0.5, 51, False), (None, 1, False)]
)
def test_a_share_of_the_budget_must_be_used(
    budget: float | None, share: float, wanted: bool
) -> None:
    facts = JitFacts(location="/", turns=1, time_left=None, context=0, budget=budget, checks=None)
    assert holds(JitEntry(instruction="x", when=JitRules(budget=share)), facts) is wanted
    timed = JitEntry(instruction="x", percent_remaining_of_timeout=100)
    assert not holds(timed, facts), "there is no deadline"
