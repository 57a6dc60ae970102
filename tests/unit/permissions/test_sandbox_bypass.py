"""Failures of commands for which the sandbox seems to be the reason."""

import pytest

from trimtab.contracts.permission import Policy
from trimtab.permissions.sandbox_bypass import REFUSED, SIGNS, was_stopped

POLICY = Policy(cwd="/work", roots=("/work",))


@pytest.mark.parametrize("sign", SIGNS)
def test_a_failed_command_that_shows_a_sign_of_it_was_stopped(sign: str) -> None:
    assert was_stopped(f"x: {sign}\n<exited with exit code 1>", POLICY)
    assert not was_stopped(f"x: {sign}\n<exited with exit code 0>", POLICY)
    assert not was_stopped(f"x: {sign}", POLICY)


def test_other_failures_and_refused_hosts_are_not_its_doing() -> None:
    assert not was_stopped("3 tests failed\n<exited with exit code 1>", POLICY)
    text = f"{REFUSED}\nx: {SIGNS[0]}\n<exited with exit code 1>"
    assert not was_stopped(text, POLICY)
