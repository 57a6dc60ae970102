"""How plan mode ends: four choices, and the plan that the person edited."""

from typing import Any

import pytest
from copilot.generated.rpc import ModeSetRequest, PlanUpdateRequest
from copilot.generated.session_events import SessionMode
from copilot.session import PermissionHandler

from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
CHOICES = ["autopilot", "autopilot_fleet", "interactive", "exit_only"]


@pytest.mark.proves("VSC-15", "VSC-16")
@pytest.mark.parametrize("action", CHOICES)
async def test_the_person_chooses_how_to_go_on_and_edits_the_plan(sdk: Sdk, action: str) -> None:
    asked: list[Any] = []

    async def approve(request: Any, _: Any) -> Any:
        asked.append(request)
        await talk.session.rpc.plan.update(PlanUpdateRequest(content="# Edited plan\n"))
        return {"approved": True, "selectedAction": action}

    replies = [
        use("exit_plan_mode", summary="# First plan", showFleet=True),
        {"tools": [{"name": "task_complete", "arguments": {"summary": "x"}}], "text": "x"},
        DONE,
    ]
    async with talking(sdk, replies, on_exit_plan_mode_request=approve) as talk:
        await talk.session.rpc.mode.set(ModeSetRequest(mode=SessionMode.PLAN))
        await talk.say("go")
        (result,) = talk.tool_results(1)
        changed = talk.heard.of("session.mode_changed")[-1]
    assert list(asked[0]["actions"]) == CHOICES
    if action == "exit_only":
        assert "Stop here." in result
    else:
        assert "# Edited plan" in result
        assert "# First plan" not in result
    assert ("start an agent for each" in result) is (action == "autopilot_fleet")
    wanted = "autopilot" if action.startswith("autopilot") else "interactive"
    assert str(getattr(changed.new_mode, "value", changed.new_mode)) == wanted


OFFERS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "by default": ({}, ["autopilot", "interactive", "exit_only"], "autopilot"),
    "with a fleet": ({"showFleet": True}, CHOICES, "autopilot"),
    "a recommended fleet": (
        {"recommendedAction": "autopilot_fleet"},
        CHOICES,
        "autopilot_fleet",
    ),
    "as older models list them": (
        {"actions": ["interactive", "exit_only"], "recommendedAction": "interactive"},
        ["interactive", "exit_only"],
        "interactive",
    ),
}


@pytest.mark.parametrize("case", OFFERS)
async def test_the_actions_that_are_offered(sdk: Sdk, case: str) -> None:
    arguments, actions, recommended = OFFERS[case]
    asked: list[Any] = []

    def approve(request: Any, _: Any) -> Any:
        asked.append(request)
        return {"approved": True}

    replies = [use("exit_plan_mode", summary="S", **arguments), DONE]
    async with talking(sdk, replies, on_exit_plan_mode_request=approve) as talk:
        await talk.say("go", agent_mode="plan")
        mode = (await talk.session.rpc.mode.get()).value
        spec = next(
            tool["function"]["parameters"]
            for tool in talk.server.requests[0].json["tools"]
            if tool["function"]["name"] == "exit_plan_mode"
        )
    assert asked == [
        {"summary": "S", "planContent": "", "actions": actions, "recommendedAction": recommended}
    ]
    assert mode == "interactive", "nobody chose to go on without being asked"
    assert list(spec["properties"]) == ["summary", "showFleet", "recommendedAction"]
    assert spec["properties"]["recommendedAction"]["enum"] == [
        "exit_only",
        "interactive",
        "autopilot",
        "autopilot_fleet",
    ]
    assert spec["required"] == ["summary"]


async def test_a_rejected_plan_ends_the_turn_and_one_with_words_does_not(sdk: Sdk) -> None:
    verdicts = [{"approved": False}, {"approved": False, "feedback": "more tests"}]
    replies = [*[use("exit_plan_mode", summary="S")] * 2, DONE]
    async with talking(sdk, replies, on_exit_plan_mode_request=lambda *_: verdicts.pop(0)) as talk:
        await talk.say("go", agent_mode="plan")
        assert len(talk.server.requests) == 1
        assert await talk.say("again", agent_mode="plan") == "Done."
        told = talk.tool_results()[-1]
    assert told.startswith("Plan not approved. User feedback:\n\nmore tests\n\n")


async def test_edits_that_were_approved_with_the_plan_are_not_asked_about(sdk: Sdk) -> None:
    asked: list[str] = []

    def on_permission(request: Any, invocation: Any) -> Any:
        asked.append(type(request).__name__)
        return PermissionHandler.approve_all(request, invocation)

    replies = [
        use("exit_plan_mode", summary="S"),
        use("create", path=str(sdk.cwd / "a.txt"), file_text="x"),
        DONE,
    ]
    verdict = {"approved": True, "selectedAction": "interactive", "autoApproveEdits": True}
    async with talking(
        sdk,
        replies,
        on_exit_plan_mode_request=lambda *_: verdict,
        on_permission_request=on_permission,
    ) as talk:
        assert await talk.say("go", agent_mode="plan") == "Done."
        completed = talk.heard.of("exit_plan_mode.completed")[0]
    assert completed.auto_approve_edits is True
    assert asked == []
    assert (sdk.cwd / "a.txt").read_text() == "x"
