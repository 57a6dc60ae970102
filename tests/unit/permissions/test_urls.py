"""Addresses in rules and in calls, in every spelling that programs understand."""

import pytest

from trimtab.permissions.urls import matches_url


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.0.0.1", "127.1", "0x7f000001", "017700000001", "0177.0.0.01"]
)
def test_a_machine_is_recognised_by_any_spelling_of_its_number(host: str) -> None:
    assert matches_url("http://127.0.0.1", f"http://{host}/x", denies=True)
    assert not matches_url("http://127.0.0.2", f"http://{host}/x", denies=True)
