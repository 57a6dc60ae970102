"""Runs of misbehaving models against limits, over the real wire; more of them in the scorecard."""

from properties.limit_cases import check_many


async def test_misbehaving_models_neither_go_on_for_ever_nor_past_a_limit() -> None:
    assert await check_many(60, first=5000) == []
