"""The official client against a server in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import check_lines
from sdkkit import Sdk


@pytest.fixture
def sdk(tmp_path: Path) -> Iterator[Sdk]:
    """A home for clients; every log they left is checked when the test is over."""
    sdk = Sdk(tmp_path)
    yield sdk
    assert sdk.failures == []
    for log in sdk.logs():
        check_lines(log.read_bytes().rstrip(b"\n").split(b"\n"))
