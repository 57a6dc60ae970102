"""How plan mode ends: four choices, and the plan that the person edited."""

from typing import Any

import pytest
from copilot.generated.rpc import ModeSetRequest, PlanUpdateRequest
from copilot.generated.session_events import SessionMode

from sdkkit import Sdk, talking, use

DONE = {"text": "Done."}
CHOICES = ["autopilot", "interactive", "exit_only", "autopilot_fleet"]


@pytest.mark.proves("VSC-15", "VSC-16")
@pytest.mark.parametrize("action", CHOICES)
async def test_the_person_chooses_how_to_go_on_and_edits_the_plan(sdk: Sdk, action: str) -> None:
    asked: list[Any] = []

    async def approve(request: Any, _: Any) -> Any:
        asked.append(request)
        await talk.session.rpc.plan.update(PlanUpdateRequest(content="# Edited plan\n"))
        return {"approved": True, "selectedAction": action}

    replies = [
        use("exit_plan_mode", summary="# First plan"),
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
