"""The rows of a log in the index of past sessions."""

from pathlib import Path
from typing import Any

import pytest

from logkit import event
from trimtab.session.log_rows import LogRows, Stopped


def rows(tmp_path: Path, *events: tuple[str, dict[str, Any]]) -> dict[str, list[Any]]:
    log = tmp_path / "events.jsonl"
    lines = [event(name, data, number) for number, (name, data) in enumerate(events)]
    log.write_bytes(b"".join(line.rstrip(b"\n") + b"\n" for line in lines))
    found = LogRows("s")
    found.read(str(log), lambda: False)
    return {name: list(table) for name, table in found.tables()}


def wrote(tool: str, arguments: Any) -> tuple[str, dict[str, Any]]:
    call = {"toolCallId": "c", "toolName": tool, "arguments": arguments}
    return "tool.execution_start", call


def test_turns_begin_with_prompts_of_people_and_collect_the_replies(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        ("user.message", {"content": "first"}),
        ("assistant.message", {"messageId": "m", "content": "one"}),
        ("user.message", {"content": "nudge", "source": "autopilot"}),
        ("assistant.message", {"messageId": "m", "content": "two"}),
        ("user.message", {"content": "second"}),
    )
    assert [row[:4] for row in found["turns"]] == [
        ("s", 0, "first", "one\n\ntwo"),
        ("s", 1, "second", ""),
    ]
    assert [row[1:] for row in found["search_index"]] == [("s", "turn", "0"), ("s", "turn", "1")]


def test_a_file_belongs_to_the_turn_that_wrote_it_first(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: c.py\n*** Update File: d.py\n*** End Patch"
    found = rows(
        tmp_path,
        ("user.message", {"content": "first"}),
        wrote("create", {"path": "a.py"}),
        wrote("view", {"path": "seen.py"}),
        ("user.message", {"content": "second"}),
        wrote("edit", {"path": "b.py"}),
        wrote("edit", {"path": "a.py"}),
        ("user.message", {"content": "third"}),
        wrote("apply_patch", patch),
    )
    assert [row[1:4] for row in found["session_files"]] == [
        ("a.py", "create", 0),
        ("b.py", "edit", 1),
        ("c.py", "apply_patch", 2),
        ("d.py", "apply_patch", 2),
    ]


def test_reading_ends_when_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(event("user.message", {"content": "x"}, 1))
    with pytest.raises(Stopped):
        LogRows("s").read(str(tmp_path / "log"), lambda: True)
