"""The rows of a log in the index of past sessions."""

from pathlib import Path
from typing import Any

import pytest

from logkit import event
from trimtab.session.log_rows import MAX_LENGTH, LogRows, Stopped


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


def test_every_row_has_its_session_and_time(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        ("session.start", {}),
        ("user.message", {"content": "see https://github.com/a/b/pull/7"}),
        wrote("create", {"path": "a.py"}),
        ("session.compaction_complete", {"summaryContent": "all of it"}),
    )
    second = "2025-11-15T20:00:0%d.000Z"
    assert found["turns"] == [("s", 0, "see https://github.com/a/b/pull/7", "", second % 1)]
    assert found["session_files"] == [("s", "a.py", "create", 0, second % 2)]
    assert found["session_refs"] == [("s", "pr", "a/b#7", 0, second % 1)]
    assert found["checkpoints"] == [("s", 1, "", "all of it", "", "", "", "", "", second % 3)]
    assert found["search_index"] == [
        ("see https://github.com/a/b/pull/7\n", "s", "turn", "0"),
        ("\nall of it\n\n\n\n\n", "s", "checkpoint", "1"),
    ]


def test_a_summary_is_split_into_its_parts(tmp_path: Path) -> None:
    names = ("checkpoint_title", "overview", "history", "work_done", "technical_details",
             "important_files", "next_steps")  # fmt: skip
    text = "".join(f"<{name}> {number} </{name}>\n" for number, name in enumerate(names))
    found = rows(
        tmp_path,
        ("session.compaction_complete", {"summaryContent": text}),
        ("session.compaction_complete", {"summaryContent": ""}),
        ("session.compaction_complete", {"summaryContent": "<overview>again"}),
    )
    assert [row[1:-1] for row in found["checkpoints"]] == [
        (1, "0", "1", "2", "3", "4", "5", "6"),
        (2, "", "again", "", "", "", "", ""),
    ]


def test_references_are_listed_once_with_the_turn_that_named_them_first(tmp_path: Path) -> None:
    commit = {"toolCallId": "c", "success": True}
    found = rows(
        tmp_path,
        ("user.message", {"content": "github.com/a/b/issues/1 [main abcdef1] no commit"}),
        ("user.message", {"content": "github.com/a/b/issues/1 and github.com/a/b/pull/1"}),
        ("assistant.message", {"messageId": "m", "content": "github.com/a/c.d/issues/22"}),
        ("tool.execution_complete", {**commit, "result": {"content": "[main abcdef1] fix"}}),
        (
            "tool.execution_complete",
            {
                **commit,
                "result": {"content": "[x (root-commit) 0123456789] y github.com/a/b/pull/3"},
            },
        ),
        ("session.error", {"message": "github.com/a/b/issues/9"}),
    )
    assert [row[1:4] for row in found["session_refs"]] == [
        ("issue", "a/b#1", 0),
        ("pr", "a/b#1", 1),
        ("issue", "a/c.d#22", 1),
        ("commit", "abcdef1", 1),
        ("commit", "0123456789", 1),
        ("pr", "a/b#3", 1),
    ]


def test_sub_agents_and_odd_data_make_no_rows(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    prompt = event("user.message", {"content": "x"}, 1)
    theirs = prompt.replace(b'{"type"', b'{"agentId":"a","type"')
    odd = prompt.replace(b'{"content":"x"}', b"5")
    reply = event("assistant.message", {"messageId": "m", "content": "early"}, 2)
    log.write_bytes(b"\n".join((reply, theirs, odd, b"")))
    found = LogRows("s")
    found.read(str(log), lambda: False)
    assert all(not table for _, table in found.tables())
    log.write_bytes(b"\n".join((theirs, prompt, prompt.replace(b"0001", b"0009"), reply, b"")))
    found.read(str(log), lambda: False)
    assert [row[2:4] for row in dict(found.tables())["turns"]] == [("x", ""), ("x", "early")]


def test_writes_of_any_form_are_files(tmp_path: Path) -> None:
    patch = "*** Delete File: gone.py\nx *** Add File: no.py\n"
    found = rows(
        tmp_path,
        wrote("edit", {"path": 5}),
        wrote("apply_patch", {"input": patch, "other": 5}),
        wrote("apply_patch", 7),
        wrote("view", {"path": '"edit"'}),
        wrote("mv", {"path": "edit"}),
    )
    assert [row[1:4] for row in found["session_files"]] == [
        ("", "edit", 0),
        ("gone.py", "apply_patch", 0),
    ]


def test_long_texts_are_cut(tmp_path: Path) -> None:
    long = "x" * (MAX_LENGTH + 1)
    found = rows(
        tmp_path,
        ("user.message", {"content": long}),
        ("assistant.message", {"messageId": "m", "content": long}),
        ("session.compaction_complete", {"summaryContent": long}),
    )
    assert [len(text) for text in found["turns"][0][2:4]] == [MAX_LENGTH, MAX_LENGTH]
    assert len(found["checkpoints"][0][3]) == MAX_LENGTH


def test_a_long_log_is_asked_about_now_and_then(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(event("x", {}, number) + b"\n" for number in range(1002)))
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) == 2

    with pytest.raises(Stopped):
        LogRows("s").read(str(log), stopped)
    log.write_bytes(b"".join(event("x", {}, number) + b"\n" for number in range(1000)))
    asked.clear()
    LogRows("s").read(str(log), stopped)
    assert asked == [1]
