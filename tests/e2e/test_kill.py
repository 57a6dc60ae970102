"""`kill -9` at every printed event and at random moments: the session always goes on."""

from pathlib import Path

import pytest

from killkit import Kill, kill_and_resume, random_kills

BOUNDARIES = 40
BATCHES = 20
PER_BATCH = 9


@pytest.mark.parametrize("boundary", range(1, BOUNDARIES + 1))
async def test_a_session_survives_a_kill_right_after_any_event(
    tmp_path: Path, boundary: int
) -> None:
    await kill_and_resume(tmp_path / "run", Kill(lines=boundary))


@pytest.mark.parametrize("batch", range(BATCHES))
async def test_a_session_survives_kills_at_random_moments(tmp_path: Path, batch: int) -> None:
    for number, kill in enumerate(random_kills(PER_BATCH, seed=batch)):
        await kill_and_resume(tmp_path / str(number), kill)
