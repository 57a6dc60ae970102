"""Fixtures for all tests, and what is done before each."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from clikit import Cli
from conformance import check_lines
from programkit import require

# How long an example takes depends on what else the machine does. The examples are the same in
# every run, so that a run fails for what was changed; `make scorecard` searches for new ones.
for name in ("fixed", "random"):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=name == "fixed",
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("TRIMTAB_EXAMPLES", "fixed"))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from scanning all collected tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are not there; the reason says how to get them."""
    for marker in (*item.iter_markers("needs"), *item.iter_markers("foreign")):
        require(*marker.args)


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The program; everything it printed as JSON or stored is checked when the test is over."""
    cli = Cli(tmp_path)
    yield cli
    for outcome in cli.outcomes:
        if outcome.out.startswith(b'{"type"'):
            check_lines(outcome.out.rstrip(b"\n").split(b"\n"))
    for log in cli.logs():
        check_lines(log.read_bytes().rstrip(b"\n").split(b"\n"))
