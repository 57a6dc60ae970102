"""Agents at work are written to and stopped from another process, and recorded sessions go on."""

from pathlib import Path

import pytest

from properties.crew_load import load
from trimtab.testing.scenarios import Scenario, find_scenarios, run_scenario

SCENARIOS = find_scenarios([str(Path(__file__).parents[1] / "scenarios")])

STEPS = ("stall_nudge", "stall_change", "no_progress")


async def test_agents_at_work_take_messages_and_stops_from_outside() -> None:
    outcome = await load(10)
    assert outcome["failures"] == 0
    assert len(outcome["times"]) == 50
    assert (outcome["code"], outcome["processes"]) == (0, 0)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_no_recorded_session_is_taken_for_a_stalled_one(scenario: Scenario) -> None:
    lines = (await run_scenario(scenario)).events
    assert not [line for line in lines if any(step in line for step in STEPS)]
    assert len(lines) > 5
