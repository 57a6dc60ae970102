from typing import Any

import pytest

from trimtab.contracts.customization import McpServer
from trimtab.mcp.server_notices import MAX_LENGTH, MAX_LINES, ServerNotices, find_log_level

LINE = "notifications/message"


def server(**extra: object) -> McpServer:
    return McpServer(name="far", type="http", source="user", url="https://far.test", extra=extra)


def show(given: McpServer, *notices: Any, method: str = LINE) -> tuple[list[Any], list[Any]]:
    shown: list[Any] = []
    updated: list[Any] = []
    notes = ServerNotices(shown.append, lambda *changed: updated.append(changed))
    for notice in notices:
        notes.show(given, method, notice)
    return shown, updated


@pytest.mark.parametrize(
    ("entry", "level"),
    [
        ({}, "warning"),
        ({"logLevel": "debug"}, "debug"),
        ({"logLevel": "off"}, ""),
        ({"logLevel": 7}, "warning"),
        ({"logLevel": "loud"}, "warning"),
    ],
)
def test_the_level_of_an_entry_counts_if_there_is_such_a_level(
    entry: dict[str, object], level: str
) -> None:
    assert find_log_level(server(**entry)) == level


def test_warnings_are_shown_without_being_asked_for_and_lower_lines_are_not() -> None:
    shown, _ = show(
        server(),
        {"level": "info", "data": "quiet"},
        {"level": "error", "logger": "db", "data": {"why": "gone"}},
    )
    (line,) = shown
    assert line.warning_type == "mcp_log"
    assert line.message == 'far (db): error: {"why":"gone"}'


def test_odd_lines_are_bounded_and_cannot_draw_on_the_terminal() -> None:
    shown, _ = show(
        server(), {"level": 3, "data": "\x1b[2J" + "x" * 10_000}, {}, {"level": "alert"}
    )
    assert all("\x1b" not in line.message for line in shown)
    assert all(len(line.message) < MAX_LENGTH + 100 for line in shown)
    assert len(shown) == 3


def test_a_server_that_says_too_much_is_cut_off_and_the_last_line_says_so() -> None:
    shown, _ = show(server(), *[{"level": "error", "data": "again"}] * (MAX_LINES * 3))
    assert len(shown) == MAX_LINES
    assert shown[-1].message.endswith("further lines are not shown, see /mcp logs")


def test_a_resource_that_changed_is_reported_by_its_address() -> None:
    method = "notifications/resources/updated"
    shown, updated = show(server(), {"uri": "a://b"}, {"uri": 7}, {}, method=method)
    assert [(one.server_name, one.uri) for one in shown] == [("far", "a://b")]
    assert updated == [("far", "a://b")]
