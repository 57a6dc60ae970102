"""Fixtures for all tests."""

from pathlib import Path

import pytest

from clikit import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
