"""A session in a list: what is taken from its metadata, and what from both ends of its log."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logkit import event, joined
from trimtab.contracts.events.session import LOG_VERSION
from trimtab.contracts.ids import timestamp
from trimtab.session.folder import SessionFolder
from trimtab.session.summary import SessionSummary, last_used, summarize

START = event(
    "session.start",
    {"startTime": "2024", "context": {"cwd": "/log", "branch": "of-log"}, "version": LOG_VERSION},
    1,
)
PROMPT = event("user.message", {"content": "Fix it"}, 2)


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    return SessionFolder("s", str(tmp_path))


def summary_of(
    folder: SessionFolder, *lines: bytes, metadata: dict[str, Any] | None = None
) -> SessionSummary:
    Path(folder.events).write_bytes(joined(list(lines)))
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in (metadata or {}).items())
    Path(folder.workspace_file).write_text(text)
    return summarize(folder)


def test_metadata_come_before_the_log(folder: SessionFolder) -> None:
    metadata = {
        "name": "Mine",
        "summary": "long",
        "cwd": "/meta",
        "branch": "of-meta",
        "client_name": "vscode",
        "created_at": "2023",
        "updated_at": "2099",
    }
    found = summary_of(folder, START, PROMPT, metadata=metadata)
    assert found == SessionSummary(
        id="s",
        path=folder.path,
        name="Mine",
        title="Mine",
        cwd="/meta",
        branch="of-meta",
        client="vscode",
        created_at="2023",
        updated_at="2099",
        size=os.path.getsize(folder.events),
    )


def test_the_log_fills_in_what_metadata_lack(folder: SessionFolder) -> None:
    found = summary_of(folder, START, PROMPT)
    assert found == SessionSummary(
        id="s",
        path=folder.path,
        title="Fix it",
        cwd="/log",
        branch="of-log",
        created_at="2024",
        updated_at="2025-11-15T20:00:02.000Z",
        size=os.path.getsize(folder.events),
    )
    assert summary_of(folder, START, metadata={"summary": "long"}).title == "long"
    assert summary_of(folder, PROMPT).created_at == "2025-11-15T20:00:02.000Z"


def test_the_title_is_the_first_prompt_of_the_person(folder: SessionFolder) -> None:
    theirs = PROMPT.replace(b'{"type"', b'{"agentId":"a","type"').replace(b"Fix", b"Theirs")
    hook = event("user.message", {"content": "Hook", "source": "hook"}, 3)
    later = event("user.message", {"content": "Later"}, 4)
    assert summary_of(folder, START, theirs, hook, PROMPT, later).title == "Fix it"
    odd = event("user.message", {"content": 5}, 5)
    assert summary_of(folder, START, odd, later).title == ""


def test_lines_that_are_no_event_are_passed(folder: SessionFolder) -> None:
    bare = event("user.message", {}, 6).replace(b'"data":{}', b'"data":5')
    found = summary_of(folder, b"rubbish", START, bare, PROMPT)
    assert (found.title, found.cwd, found.problem) == ("Fix it", "/log", None)


@pytest.mark.parametrize("version", [0, LOG_VERSION, LOG_VERSION + 1, LOG_VERSION + 0.5, "9", None])
def test_a_newer_format_is_a_problem(folder: SessionFolder, version: Any) -> None:
    problem = summary_of(folder, event("session.start", {"version": version}, 1)).problem
    if isinstance(version, int | float) and version > LOG_VERSION:
        assert problem == f"The event log is in version {version:g}: update trimtab to open it."
    else:
        assert problem is None


def test_a_log_without_an_event_is_a_problem(folder: SessionFolder) -> None:
    assert "contains no event" in (summary_of(folder).problem or "")
    assert "contains no event" in (summary_of(folder, b"rubbish" * 100).problem or "")
    assert summary_of(folder, PROMPT).problem is None


def test_a_first_line_that_is_not_read_whole_is_no_problem(folder: SessionFolder) -> None:
    long = event("user.message", {"content": "x" * (1 << 17)}, 1)
    found = summary_of(folder, long, PROMPT)
    assert (found.problem, found.title) == (None, "")
    assert summary_of(folder, START, long).cwd == "/log"
    exact = event("user.message", {"content": "Fix " + "x" * 200_000}, 1)
    cut = exact[: (1 << 17) - 3] + b'"}}'
    Path(folder.events).write_bytes(cut)
    assert len(cut) == 1 << 17
    assert summarize(folder).problem is None


def test_what_cannot_be_read_is_told(folder: SessionFolder) -> None:
    Path(folder.workspace_file).write_text("a: [")
    assert (summarize(folder).problem or "").startswith("The event log cannot be read: ")
    assert summarize(folder).size == 0
    Path(folder.events).write_bytes(joined([START]))
    assert "workspace.yaml" in (summarize(folder).problem or "")
    assert not summarize(folder).in_use


def test_a_session_was_used_at_its_last_event_or_change(folder: SessionFolder) -> None:
    later, earlier = {"updated_at": "2099"}, {"updated_at": "2001"}
    assert last_used(folder, later) == "2099"
    Path(folder.events).write_bytes(joined([START]))
    assert last_used(folder, later) == "2099"
    assert last_used(folder, earlier) == last_used(folder, {}) == "2025-11-15T20:00:01.000Z"


def test_without_a_time_in_them_the_files_tell(folder: SessionFolder) -> None:
    os.utime(folder.path, (86_400, 86_400))
    assert last_used(folder, {}) == timestamp(86_400)
    Path(folder.events).write_bytes(b"rubbish\n")
    os.utime(folder.events, (90_000, 90_000))
    assert last_used(folder, {}) == timestamp(90_000)
    gone = SessionFolder("x", folder.path + "/nowhere")
    assert last_used(gone, {}) == timestamp(0)
    assert last_used(gone, {"updated_at": ""}) == timestamp(0)
    assert last_used(gone, {"updated_at": 5}) == "5"


@pytest.mark.timeout(30)
def test_a_pipe_in_place_of_the_log_does_not_block(folder: SessionFolder) -> None:
    os.mkfifo(folder.events)
    os.utime(folder.path, (90_000, 90_000))
    assert last_used(folder, {}) == timestamp(90_000)
    assert "not a file" in (summarize(folder).problem or "")
