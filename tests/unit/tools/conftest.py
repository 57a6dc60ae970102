"""Fixtures for tests of tools."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit import Bench, open_bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path) as bench:
        yield bench
