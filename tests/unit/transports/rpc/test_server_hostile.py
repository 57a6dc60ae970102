"""A server under hostile and heavy use, in the size that fits a test run."""

import pytest

from properties.rpc_fuzz import fuzz
from properties.rpc_load import load


async def test_frames_no_client_would_send_neither_crash_nor_hang_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COPILOT_OFFLINE", "true")
    outcome = await fuzz(5000, seed=1)
    assert outcome["bugs"] == []
    assert outcome["failures"] == []
    assert outcome["hangs"] == 0
    assert outcome["results"] > 500


async def test_sessions_side_by_side_do_not_mix() -> None:
    outcome = await load(sessions=30, tokens=20, rate=20)
    assert outcome["wrong"] == []
    assert outcome["rss_mb"] < 200
