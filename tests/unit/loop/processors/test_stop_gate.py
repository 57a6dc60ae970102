"""Hooks that send the agent back to work before it stops."""

from loopkit import make_run
from trimtab.contracts.processor import Stop
from trimtab.contracts.run import Prompt, Run
from trimtab.loop.processors.stop_gate import MAX_BLOCKS, StopGate

END = Stop(reason="end_turn")


async def test_a_hook_is_told_whether_it_blocked_before_and_its_words_are_not_billed() -> None:
    asked: list[bool] = []

    async def block(run: Run, again: bool) -> str | None:
        asked.append(again)
        return "Run the tests."

    gate, run = StopGate(block), make_run([])
    for _ in range(MAX_BLOCKS):
        prompt = await gate.before_stop(run, END)
        assert isinstance(prompt, Prompt)
        assert (prompt.text, prompt.source, prompt.billable) == ("Run the tests.", "hook", False)
        assert await gate.on_prompt(run, prompt) is prompt
    stop = await gate.before_stop(run, END)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.exit_code) == ("agent_stop_block_limit", 3)
    assert asked == [False, *[True] * MAX_BLOCKS]
    (warning,) = run.session.of("session.warning")  # type: ignore[attr-defined]
    assert warning.message == stop.message
    await gate.on_prompt(run, Prompt(text="more"))
    assert isinstance(await gate.before_stop(run, END), Prompt), "a new prompt counts anew"
    assert asked[-1] is False


async def test_a_hook_without_a_reason_lets_the_run_stop() -> None:
    async def agree(run: Run, again: bool) -> str | None:
        return ""

    assert await StopGate(agree).before_stop(make_run([]), END) is None
