"""Fixtures for tests that drive the installed program."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import check_lines
from sdkkit import Sdk


@pytest.fixture
def sdk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sdk]:
    """SDK clients; every log they left is checked when the test is over."""
    even = zlib.crc32(request.node.name.encode()) % 2 == 0
    sdk = Sdk(tmp_path, "stdio" if even else "tcp")
    yield sdk
    assert sdk.failures == []
    for log in sdk.logs():
        check_lines(log.read_bytes().rstrip(b"\n").split(b"\n"))
