"""The model for planning: used in plan mode, and given up after it."""

from typing import Any

from loopkit import change_agent, make_run
from trimtab.contracts.provider import Provider
from trimtab.contracts.run import Run
from trimtab.models.routing import ModelRouting


class Switch:
    """Switches the model of a run, as the controls of a session do."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.efforts: list[str | None] = []

    async def switch_model(self, model: str, *, effort: str | None = None) -> str:
        self.set_model(model, effort=effort)
        return model

    def set_model(
        self, model: str, *, effort: str | None = None, provider: Provider | None = None
    ) -> None:
        settings: Any = self.run.agent.model
        change_agent(self.run, model=type(settings)(provider=settings.provider, name=model))
        self.efforts.append(effort)

    def set_effort(self, effort: str | None) -> None:
        self.efforts.append(effort)


def routed(mode: str) -> tuple[Run, Switch, ModelRouting]:
    run = make_run([], mode=mode)
    switch = Switch(run)
    return run, switch, ModelRouting("planner", "high", lambda: switch)


async def test_plan_mode_uses_the_planner_and_leaving_it_the_usual_model() -> None:
    run, switch, routing = routed("plan")
    assert await routing.before_request(run) is None
    assert run.agent.model.name == "planner"
    assert switch.efforts == ["high"]
    await routing.before_request(run)
    assert switch.efforts == ["high"], "it switches once"
    change_agent(run, mode="interactive")
    await routing.before_request(run)
    assert run.agent.model.name == "scripted"


async def test_another_mode_switches_nothing() -> None:
    run, switch, routing = routed("interactive")
    await routing.before_request(run)
    assert (run.agent.model.name, switch.efforts) == ("scripted", [])


async def test_the_model_is_not_switched_in_the_middle_of_a_prompts_work() -> None:
    run, _, routing = routed("plan")
    run.turn = 1
    await routing.before_request(run)
    assert run.agent.model.name == "scripted"


async def test_a_model_that_was_chosen_meanwhile_is_kept() -> None:
    run, switch, routing = routed("plan")
    await routing.before_request(run)
    switch.set_model("mine")
    change_agent(run, mode="interactive")
    await routing.before_request(run)
    assert run.agent.model.name == "mine"
