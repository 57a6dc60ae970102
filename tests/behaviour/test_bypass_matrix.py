"""No way around a rule, whatever the surface: a part of the matrix that `make scorecard` tries."""

from pathlib import Path

import pytest

from properties.bypass_matrix import attempt, pairs


@pytest.mark.parametrize(("guard", "surface"), pairs())
async def test_no_way_around_a_rule_changes_anything(
    tmp_path: Path, guard: str, surface: str
) -> None:
    assert await attempt(tmp_path, guard, surface, every=8) == []
