"""Addresses in rules and in calls, in every spelling that programs understand."""

import pytest

from trimtab.permissions.urls import matches_url


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.0.0.1", "127.1", "0x7f000001", "017700000001", "0177.0.0.01"]
)
def test_a_machine_is_recognised_by_any_spelling_of_its_number(host: str) -> None:
    assert matches_url("http://127.0.0.1", f"http://{host}/x", denies=True)
    assert not matches_url("http://127.0.0.2", f"http://{host}/x", denies=True)


@pytest.mark.parametrize(
    "path",
    ["/safe/../admin", "/safe/%2e%2e/admin", "/safe/%2E%2E%2Fadmin", "/safe/..%2fadmin",
     "/safe/%252e%252e/admin", "/safe/..;/admin", "/safe/..%5cadmin", "/safe/.."],
)  # fmt: skip
def test_a_path_that_climbs_out_is_not_allowed_by_the_folder_it_names(path: str) -> None:
    assert not matches_url("https://a.test/safe", f"https://a.test{path}")


@pytest.mark.parametrize(
    "path", ["/safe", "/safe/a..b", "/safe/x?up=../..", "/safe/...", "/safe#.."]
)
def test_a_path_below_an_allowed_one_is_allowed(path: str) -> None:
    assert matches_url("https://a.test/safe", f"https://a.test{path}")


def test_a_rule_that_denies_counts_for_the_path_that_is_meant() -> None:
    meant = "https://a.test/other/../%73ecret//x"
    assert matches_url("https://a.test/secret/x", meant, denies=True)
    assert not matches_url("https://a.test/secret/x", meant)
