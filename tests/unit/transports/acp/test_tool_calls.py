"""Tool calls as editors show them: titles, kinds, places, diffs."""

from typing import Any

import pytest

from trimtab.host.parts import FileEdit, ToolInvocation
from trimtab.transports.acp.tool_calls import (
    build_diffs,
    describe_title,
    fence,
    find_kind,
    find_locations,
    merge_edits,
)


def call(name: str, **fields: Any) -> ToolInvocation:
    fields.setdefault("arguments", {})
    return ToolInvocation(
        key="call  1", call_id="1", name=name, title=name, state="running", **fields
    )


TITLES = [
    ("bash", {"command": "make test"}, "make test"),
    ("bash", {"command": "cd x\nmake"}, "cd x …"),
    ("view", {"path": "/project/src/a.py"}, "Read src/a.py"),
    ("edit", {"path": "a.py"}, "Edit a.py"),
    ("create", {"path": "/etc/motd"}, "Create /etc/motd"),
    ("grep", {"pattern": "TODO"}, "Search for TODO"),
    ("exit_plan_mode", {}, "Leave plan mode"),
    ("bash", {"command": "x" * 300}, "x" * 199 + "…"),
]


@pytest.mark.parametrize(("name", "arguments", "title"), TITLES)
def test_a_title_shows_the_command_or_the_file(
    name: str, arguments: dict[str, str], title: str
) -> None:
    assert describe_title(call(name, arguments=arguments), "/project") == title


def test_a_tool_of_a_server_is_of_no_known_kind() -> None:
    assert find_kind(call("view", server="files")) == "other"
    assert find_kind(call("view")) == "read"


def test_locations_are_absolute_and_have_the_first_line() -> None:
    viewed = call("view", arguments={"path": "a.py", "view_range": [7, 9]})
    assert find_locations(viewed, "/project") == [{"path": "/project/a.py", "line": 7}]


def test_two_edits_of_a_file_are_one_diff_from_the_first_text_to_the_last() -> None:
    edits = (
        FileEdit(path="/a", before="1", after="2"),
        FileEdit(path="/a", before="2", after="3"),
        FileEdit(path="/b", after="4", created=True),
    )
    texts = {"1": "one", "3": "three", "4": "four"}
    assert [edit.after for edit in merge_edits(edits)] == ["3", "4"]
    assert build_diffs(call("bash", edits=edits), texts.get) == [
        {"type": "diff", "path": "/a", "oldText": "one", "newText": "three"},
        {"type": "diff", "path": "/b", "newText": "four"},
    ]


def test_a_file_that_is_not_kept_has_no_diff() -> None:
    edits = (FileEdit(path="/a", before="", after="2"),)
    assert build_diffs(call("bash", edits=edits), {"2": "two"}.get) == []


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fence("a ``` b", "sh") == "````sh\na ``` b\n````"
