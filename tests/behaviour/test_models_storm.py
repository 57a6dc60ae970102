"""Many sessions against a service in trouble: all finish, and they do not make it worse."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clikit import bash
from trimtab import Runtime, SessionOptions
from trimtab.contracts.options import LimitOptions
from trimtab.testing import ModelServer, Script
from trimtab.testing.playing import ALLOW_ALL

SESSIONS = 25
TURNS = 8
STORM: Any = [
    {"error": {"status": 429, "headers": {"retry-after": "0"}}},
    {"error": 503},
    {"text": "half an answer that never ends", "break": {"how": "close", "after": 2}},
    {"error": 500},
]
CALM: Any = {
    "replies": [],
    "otherwise": {"tools": [bash("true")]},
}


@pytest.mark.slow
async def test_25_sessions_in_a_storm_finish_with_few_requests_in_vain(tmp_path: Path) -> None:
    storm = Script.of({"replies": STORM * 1000})
    async with ModelServer(storm) as server:
        env = {
            "COPILOT_HOME": str(tmp_path / "home"),
            "PATH": "/usr/bin:/bin",
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_MODEL": "scripted",
        }
        runtime = Runtime(env=env)
        limits = LimitOptions(max_turns=TURNS, retry_delay=0.2)
        options = SessionOptions(cwd=str(tmp_path), permissions=ALLOW_ALL, limits=limits)

        async def work() -> str:
            live = await runtime.create(options)
            try:
                return (await live.ask("go")).reason
            finally:
                await live.close()

        asyncio.get_running_loop().call_later(1.5, server.load, Script.of(CALM))
        async with asyncio.timeout(60):
            ends = await asyncio.gather(*(work() for _ in range(SESSIONS)))
        needed = SESSIONS * TURNS
        assert ends == ["turn_limit"] * SESSIONS, "every session did all its turns"
        assert server.usage.requests <= 1.2 * needed, server.usage
