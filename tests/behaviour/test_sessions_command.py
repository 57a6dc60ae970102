"""`trimtab sessions …` as a person or a script uses it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logkit import SESSION, chain, event, joined, lines_in, sessions, short_log, store_session
from trimtab.session.log import EventLog

OLD = "0b0e8a5e-9a7d-4a4c-9b1c-0123456789ab"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store_session(
        tmp_path, short_log(), workspace_yaml="id: x\ncwd: /srv/here\nname: naïve question\n"
    )
    return tmp_path


def document(home: Path, *args: str, code: int = 0) -> Any:
    """The one JSON document a command prints."""
    done = sessions(home, *args, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_an_empty_home_is_listed_as_such(tmp_path: Path) -> None:
    done = sessions(tmp_path, "list")
    assert (done.returncode, done.stdout) == (0, "No sessions yet.\n")
    assert document(tmp_path, "list") == {"sessions": []}
    assert os.listdir(tmp_path) == []


def test_the_list_is_aligned_and_newest_first(home: Path) -> None:
    store_session(home, [event("user.message", {"content": "older"}, 1)], OLD)
    head, first, second = sessions(home, "list").stdout.splitlines()
    assert head.split() == ["ID", "LAST", "USED", "SIZE", "FOLDER", "TITLE"]
    assert first.startswith("5f0c8a1e  2025-11-15 20:00  ")
    assert head.index("TITLE") == first.index("naïve question") == second.index("older")
    assert [entry["id"] for entry in document(home, "list")["sessions"]] == [SESSION, OLD]


def test_show_prints_the_last_turn(home: Path) -> None:
    text = sessions(home, "show", SESSION[:8]).stdout
    assert text.startswith(f"{SESSION}  naïve question\n/srv/here, last used 2025-11-15 20:00, ")
    assert '> Was heißt "naïve"?\n> \tTab\n* bash: {' in text
    assert "ok {}" in text
    assert "Einfältig 🙂" in text
    shown = document(home, "show", "naïve question")
    assert shown["events"][0]["type"] == "user.message"
    assert shown["session"]["id"] == SESSION
    assert len(document(home, "show", SESSION, "--all")["events"]) == 12


def test_show_events_prints_a_line_for_each(home: Path) -> None:
    lines = sessions(home, "show", SESSION, "--events").stdout.splitlines()
    assert len(lines) == 12
    assert "user.message" in lines[3]


def test_what_a_session_holds_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202eevil\u200b\x08"
    lines = [
        event("session.start", {"sessionId": "x", "context": {"cwd": "/" + evil}}, 1),
        event("user.message", {"content": evil}, 2),
        event("tool.execution_start", {"toolCallId": "c", "toolName": evil, "arguments": evil}, 3),
        event("tool.execution_complete", {"toolCallId": "c", "result": {"content": evil}}, 4),
        event("assistant.message", {"content": evil, "messageId": "m"}, 5),
        event(evil, {"content": evil}, 6),
    ]
    store_session(tmp_path, lines, SESSION)
    for args in (
        ("list",),
        ("show", SESSION),
        ("show", SESSION, "--events"),
        ("export", SESSION),
        ("export", SESSION, "--format", "html"),
        ("verify", SESSION),
        ("show", evil),
    ):
        done = sessions(tmp_path, *args)
        for text in (done.stdout, done.stderr):
            assert not set("\x1b\x07\x08\u202e\u200b") & set(text), args


def test_verify_says_intact_or_damaged_by_its_exit_code(home: Path) -> None:
    assert "intact, 12 events" in sessions(home, "verify", SESSION).stdout
    assert document(home, "verify", SESSION)["intact"] is True
    log = home / "session-state" / SESSION / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-30])
    store_session(home, [event("x", {}, 1)], OLD)
    before = log.read_bytes()
    done = sessions(home, "verify", "--all")
    assert done.returncode == 1
    assert f"{SESSION}  DAMAGED, 11 events" in done.stdout
    assert "The last record is cut off." in done.stdout
    assert f"{OLD}  intact" in done.stdout
    report = document(home, "verify", SESSION, code=1)
    assert [finding["kind"] for finding in report["damage"]] == ["torn"]
    assert log.read_bytes() == before


def test_repair_mends_and_says_what_it_did(home: Path) -> None:
    log = home / "session-state" / SESSION / "events.jsonl"
    log.write_bytes(log.read_bytes() + b"rubbish\n")
    assert document(home, "repair", SESSION)["repaired"][0]["kind"] == "garbage"
    assert log.read_bytes() == joined(short_log())
    assert sessions(home, "repair", SESSION).stdout == "Nothing to repair.\n"
    assert sessions(home, "verify", SESSION).returncode == 0


@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_export_writes_to_a_file_or_to_standard_output(home: Path, form: str) -> None:
    printed = sessions(home, "export", SESSION, "--format", form).stdout
    target = home / "out"
    assert sessions(home, "export", SESSION, "--format", form, "-o", str(target)).stdout == ""
    assert target.read_text() == printed
    if form == "json":
        assert json.loads(printed) == [json.loads(line) for line in short_log()]
    else:
        assert "Einfältig 🙂" in printed
        assert document(home, "export", SESSION, "--format", form)["text"] == printed


def test_fork_delete_and_restore(home: Path) -> None:
    copy = document(home, "fork", SESSION, "--prompt", "1", "--name", "a copy")
    assert len(lines_in(Path(copy["path"]) / "events.jsonl")) == 12
    assert len(document(home, "list")["sessions"]) == 2
    assert document(home, "delete", "a copy")["id"] == copy["id"]
    assert [entry["id"] for entry in document(home, "trash")["sessions"]] == [copy["id"]]
    assert len(document(home, "list")["sessions"]) == 1
    assert "Restored" in sessions(home, "restore", copy["id"]).stdout
    assert len(document(home, "list")["sessions"]) == 2
    assert document(home, "trash") == {"sessions": []}


def test_a_session_in_use_can_be_read_and_forked_but_not_deleted_or_repaired(home: Path) -> None:
    log = EventLog.open(str(home / "session-state" / SESSION / "events.jsonl"))
    try:
        assert "[in use]" in sessions(home, "list").stdout
        assert sessions(home, "show", SESSION).returncode == 0
        assert sessions(home, "verify", SESSION).returncode == 0
        assert sessions(home, "fork", SESSION).returncode == 0
        for command in ("delete", "repair"):
            refused = sessions(home, command, SESSION)
            assert refused.returncode == 2
            assert f"in use by process {os.getpid()}" in refused.stderr
            assert "fork" in refused.stderr
    finally:
        log.close()


@pytest.mark.parametrize(
    "args",
    [
        ("show", "nothing"),
        ("verify", "nothing"),
        ("repair", "nothing"),
        ("export", "nothing"),
        ("fork", "nothing"),
        ("delete", "nothing"),
        ("restore", "nothing"),
        ("fork", SESSION, "--at", "nothing"),
        ("verify",),
        ("verify", "--all", SESSION),
        ("show", "../" + SESSION),
    ],
)
def test_what_cannot_be_done_is_exit_code_2_with_a_sentence(
    home: Path, args: tuple[str, ...]
) -> None:
    done = sessions(home, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    error = document(home, *args, code=2)["error"]
    assert error["exitCode"] == 2


@pytest.mark.parametrize("args", [("bogus",), ("show",), ("fork", "x", "--prompt", "0")])
def test_wrong_usage_is_exit_code_2_and_one_sentence(home: Path, args: tuple[str, ...]) -> None:
    done = sessions(home, *args)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_without_an_action_sessions_are_listed(home: Path) -> None:
    assert sessions(home).stdout == sessions(home, "list").stdout
    assert sessions(home, "--json").stdout == sessions(home, "list", "--json").stdout


def test_the_old_name_of_the_prompt_option_still_works(home: Path) -> None:
    copies = [document(home, "fork", SESSION, name, "1") for name in ("--prompt", "--turn")]
    first, second = (lines_in(Path(copy["path"]) / "events.jsonl") for copy in copies)
    assert len(first) == len(second)
    both = sessions(home, "fork", SESSION, "--prompt", "1", "--turn", "1")
    assert both.returncode == 2


def test_following_ends_when_nobody_writes(home: Path) -> None:
    done = sessions(home, "show", SESSION, "--follow")
    assert done.returncode == 0
    assert done.stdout == sessions(home, "show", SESSION).stdout


def test_a_reader_that_has_seen_enough_is_no_error(home: Path) -> None:
    import subprocess
    import sys

    store_session(home, [event("user.message", {"content": "x" * 500_000}, 1)], OLD)
    child = subprocess.Popen(
        [sys.executable, "-m", "trimtab", "sessions", "export", OLD],
        env={"COPILOT_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(20) in (0, 141)


REAL: dict[str, tuple[list[tuple[str, dict[str, Any]]], str]] = {
    "1.0.35": (
        [
            ("session.start", {"sessionId": SESSION, "version": 1, "producer": "copilot-agent",
                "copilotVersion": "1.0.35", "startTime": "2025-11-15T20:42:00.000Z",
                "context": {"cwd": "/w", "gitRoot": "/w", "branch": "main"}}),
            ("session.model_change", {"newModel": "gpt-5"}),
            ("system.message", {"role": "system", "content": "You are…"}),
            ("user.message", {"content": "one", "transformedContent": "<x>one", "attachments": []}),
            ("assistant.turn_start", {"turnId": "0", "interactionId": "i"}),
            ("assistant.message", {"messageId": "m", "content": "first", "toolRequests": []}),
            ("assistant.turn_end", {"turnId": "0"}),
            ("system.message", {"role": "system", "content": "You are…"}),
            ("user.message", {"content": "two", "attachments": []}),
            ("assistant.message", {"messageId": "m2", "content": "second", "toolRequests": []}),
        ],
        "id: x\ncwd: /w\nsummary_count: 0\nsummary: |\n  # Two\n  lines\n",
    ),
    "1.0.102": (
        [
            ("session.start", {"sessionId": SESSION, "version": 1, "producer": "copilot-agent",
                "copilotVersion": "1.0.102", "startTime": "2025-11-15T20:42:00.000Z",
                "autoTier": "x", "context": {"cwd": "/w"}, "githubMcpToolConfig": {"a": []}}),
            ("session.mode_changed", {"previousMode": "interactive", "newMode": "autopilot"}),
            ("user.message", {"content": "two", "messageId": "u", "delivery": "idle"}),
            ("permission.requested", {"requestId": "r", "permissionRequest": {"kind": "shell"}}),
            ("permission.completed", {"requestId": "r", "result": {"kind": "approved"}}),
            ("session.of_the_future", {"anything": [1, {"deep": None}]}),
            ("assistant.message", {"messageId": "m2", "content": "second", "model": "m"}),
        ],
        "id: x\ncwd: /w\nname: Two lines\nuser_named: false\nclient_name: cli\nfork_count: 0\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", REAL)
def test_a_folder_of_the_real_program_is_listed_shown_verified_and_exported(
    tmp_path: Path, version: str
) -> None:
    events, workspace = REAL[version]
    folder = store_session(tmp_path, chain(events), workspace_yaml=workspace)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (entry,) = document(tmp_path, "list")["sessions"]
    assert entry["cwd"] == "/w"
    assert entry["problem"] is None
    assert "Two" in sessions(tmp_path, "list").stdout
    shown = sessions(tmp_path, "show", SESSION).stdout
    assert "> two" in shown
    assert "second" in shown
    assert sessions(tmp_path, "verify", SESSION).returncode == 0
    assert json.loads(sessions(tmp_path, "export", SESSION, "--format", "json").stdout) == [
        json.loads(line) for line in chain(events)
    ]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
