"""Times by cron expressions."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from trimtab.host.cron import find_zone, parse_cron

UTC = ZoneInfo("UTC")
NOON = datetime(2026, 11, 17, 12, 0, 30, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2026-11-17T12:01"),
        ("*/5 * * * *", "2026-11-17T12:05"),
        ("0 9 * * 1-5", "2026-11-18T09:00"),
        ("30 8 * * sun", "2026-11-22T08:30"),
        ("30 8 * * 7", "2026-11-22T08:30"),
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 13 * fri", "2026-11-20T00:00"),
        ("0,30 11-12 * * *", "2026-11-17T12:30"),
        ("10/20 * * * *", "2026-11-17T12:10"),
        ("59 23 31 12 *", "2026-12-31T23:59"),
        ("@weekly", "2026-11-22T00:00"),
    ],
)
def test_the_next_run_is_the_first_minute_that_matches(expression: str, expected: str) -> None:
    found = parse_cron(expression).next_run(NOON)
    assert found.isoformat(timespec="minutes").removesuffix("+00:00") == expected


@pytest.mark.parametrize(
    "expression",
    ["", "bogus", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
     "5-1 * * * *", "*/0 * * * *", "a-b * * * *", "1,,2 * * * *", "* * * * * *"],
)  # fmt: skip
def test_an_expression_that_names_no_times_is_refused(expression: str) -> None:
    with pytest.raises(ValueError):
        parse_cron(expression)


def test_a_day_that_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="no day matches"):
        parse_cron("0 0 31 2 *").next_run(NOON)


def test_times_are_those_of_the_zone() -> None:
    berlin = find_zone("Europe/Berlin", {})
    found = parse_cron("0 9 * * *").next_run(NOON.astimezone(berlin))
    assert found.astimezone(UTC).isoformat() == "2026-11-18T08:00:00+00:00"
    assert str(find_zone(None, {"TZ": "Asia/Tokyo"})) == "Asia/Tokyo"
    assert find_zone(None, {}) is not None
    with pytest.raises(ValueError, match="no time zone"):
        find_zone("No/Such", {})
