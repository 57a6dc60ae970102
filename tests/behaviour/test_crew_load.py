"""Agents at work are written to and stopped from another process, and recorded sessions go on."""

from pathlib import Path

import pytest

import scenariokit
from properties.crew_load import load

STEPS = ("stall_nudge", "stall_change", "no_progress")


async def test_agents_at_work_take_messages_and_stops_from_outside() -> None:
    outcome = await load(10)
    assert outcome["failures"] == 0
    assert len(outcome["times"]) == 50
    assert (outcome["code"], outcome["processes"]) == (0, 0)


@pytest.mark.parametrize("name", scenariokit.NAMES)
async def test_no_recorded_session_is_taken_for_a_stalled_one(name: str) -> None:
    lines = [str(line) for line in await scenariokit.replay(name)]
    assert not [line for line in lines if any(step in line for step in STEPS)]
    assert Path(scenariokit.FOLDER / name / "recorded.jsonl").exists()
