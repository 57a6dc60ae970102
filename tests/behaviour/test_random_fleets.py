"""A sample of the random fleets; `python tests/properties/fleet_cases.py 200` plays many."""

import pytest

from properties.fleet_cases import play


@pytest.mark.needs("git")
@pytest.mark.parametrize("seed", [3])
async def test_a_random_fleet_ends_with_a_green_branch_or_a_precise_report(seed: int) -> None:
    fleet = await play(seed)
    assert fleet["status"] == "finished"
