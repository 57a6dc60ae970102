"""An agent knows which of its processors act at each stage."""

from loopkit import change_agent, make_run
from trimtab.contracts.processor import STAGES, Processor, Stop
from trimtab.contracts.run import Run


class Limit(Processor):
    async def before_request(self, run: Run) -> Stop | None:
        return None


class StricterLimit(Limit):
    async def before_stop(self, run: Run, stop: Stop) -> None:
        return None


def test_only_processors_that_override_a_stage_act_at_it_and_in_order() -> None:
    first, idle, second = Limit(), Processor(), StricterLimit()
    acting = make_run([], processors=(first, idle, second)).agent.acting
    assert list(acting) == list(STAGES)
    assert acting["before_request"] == (first, second)
    assert acting["before_stop"] == (second,)
    assert acting["on_prompt"] == acting["before_tool"] == acting["after_tool"] == ()


def test_a_stage_that_one_processor_is_given_by_itself_counts() -> None:
    changed, plain = Processor(), Limit()
    changed.before_request = plain.before_request  # type: ignore[method-assign]
    assert make_run([], processors=(changed,)).agent.acting["before_request"] == (changed,)


def test_another_pipeline_acts_from_then_on() -> None:
    run, limit = make_run([], processors=(Limit(),)), StricterLimit()
    change_agent(run, pipeline=(limit,))
    assert run.agent.acting["before_request"] == run.agent.acting["before_stop"] == (limit,)
