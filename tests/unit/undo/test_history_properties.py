"""Undo never loses a byte of others, whatever happened: random cases, more of them in `make scorecard`."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from properties.undo_cases import check

SETTINGS = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@SETTINGS
@given(st.integers(min_value=0, max_value=1 << 32))
async def test_undo_restores_every_path_and_loses_no_byte_of_others(seed: int) -> None:
    await check(seed)
