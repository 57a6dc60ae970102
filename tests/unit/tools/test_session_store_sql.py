"""The `session_store_sql` tool: what it finds in past sessions, and that it only reads."""

import os
from pathlib import Path
from typing import Any

import pytest

from toolkit import Bench
from trimtab.config.paths import Home
from trimtab.contracts.events.assistant import AssistantMessage
from trimtab.contracts.events.context import SessionCompactionComplete
from trimtab.contracts.events.envelope import EventData
from trimtab.contracts.events.tool import ToolExecutionComplete, ToolExecutionStart
from trimtab.contracts.events.user import UserMessage
from trimtab.session.past_sessions import PastSessions, prepare_index
from trimtab.session.session import Projections, Session
from trimtab.session.store import SessionStore
from trimtab.session.trash import delete
from trimtab.tools.session_store_sql.tool import SessionStoreSql

SUMMARY = "<overview>Login</overview><next_steps>Deploy</next_steps><checkpoint_title>One</checkpoint_title>"


def said(prompt: str, *replies: str) -> list[EventData]:
    answers = [AssistantMessage(message_id="m", content=reply) for reply in replies]
    return [UserMessage(content=prompt), *answers]


class SessionsOnDisk:
    """Sessions on a disk, and the tool that looks for them."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.home = Home(config=str(folder / "home"), state=str(folder / "home"))
        self.store = SessionStore(self.home)
        self.bench = bench
        bench.tools["session_store_sql"] = SessionStoreSql(
            self.home.session_state, lambda: prepare_index(self.home)
        )

    def add(self, events: list[EventData], **options: Any) -> str:
        folder, log = self.store.create(cwd="/project", **options)
        session = Session(folder.id, log, Projections())
        for event in events:
            session.emit(event)
        session.close()
        return folder.id

    async def ask(self, query: str) -> str:
        return await self.bench.text("session_store_sql", description="test", query=query)


@pytest.fixture
def past(bench: Bench, tmp_path: Path) -> SessionsOnDisk:
    return SessionsOnDisk(bench, tmp_path)


async def test_turns_of_past_sessions_are_found_by_words(past: SessionsOnDisk) -> None:
    past.add(said("The login test is flaky", "It raced.", "Fixed."))
    past.add(said("Write docs", "Done."), name="docs")
    found = await past.ask(
        "SELECT t.user_message, t.assistant_response FROM search_index s JOIN turns t "
        "ON t.session_id = s.session_id AND t.turn_index = s.source_id "
        "WHERE search_index MATCH 'flaky' AND s.source_type = 'turn'"
    )
    assert "| The login test is flaky | It raced.\\n\\nFixed. |" in found
    assert "docs" not in found
    assert "| docs | /project |" in await past.ask(
        "SELECT name, cwd FROM sessions WHERE name <> ''"
    )


async def test_files_references_and_checkpoints_are_listed(past: SessionsOnDisk) -> None:
    commit = {"content": "[main 1a2b3c4] fix: login\n"}
    past.add(
        [
            *said("See https://github.com/acme/shop/issues/7"),
            ToolExecutionStart(tool_call_id="a", tool_name="edit", arguments={"path": "/p/a.py"}),
            ToolExecutionStart(
                tool_call_id="b",
                tool_name="apply_patch",
                arguments="*** Begin Patch\n*** Add File: new.py\n+x\n*** End Patch",
            ),
            ToolExecutionStart(tool_call_id="c", tool_name="view", arguments={"path": "/p/b.py"}),
            ToolExecutionComplete(tool_call_id="c", success=True, result=commit),
            SessionCompactionComplete(success=True, summary_content=SUMMARY),
        ]
    )
    files = await past.ask("SELECT file_path, tool_name FROM session_files ORDER BY 1")
    assert files.endswith("| /p/a.py | edit |\n| new.py | apply_patch |")
    refs = await past.ask("SELECT ref_type, ref_value FROM session_refs ORDER BY 1")
    assert refs.endswith("| commit | 1a2b3c4 |\n| issue | acme/shop#7 |")
    checkpoints = await past.ask("SELECT title, overview, next_steps FROM checkpoints")
    assert checkpoints.endswith("| One | Login | Deploy |")


async def test_what_changes_is_taken_in_and_what_is_deleted_is_gone(past: SessionsOnDisk) -> None:
    first = past.add(said("one"))
    second = past.add(said("two"))
    assert "2 row(s)" in await past.ask("SELECT * FROM sessions")
    _, log = past.store.open(second)
    session = Session(second, log, Projections())
    session.emit(UserMessage(content="three"))
    session.close()
    delete(past.home, past.store.folder(first))
    turns = await past.ask("SELECT user_message FROM turns ORDER BY turn_index")
    assert turns.endswith("| two |\n| three |")
    assert "0 row(s)" in await past.ask("SELECT * FROM search_index WHERE search_index MATCH 'one'")


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM turns",
        "INSERT INTO sessions (id) VALUES ('x')",
        "WITH x AS (SELECT 1) DELETE FROM turns",
        "SELECT 1; DROP TABLE turns",
        "ATTACH 'other.db' AS other",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "",
    ],
)
async def test_nothing_can_be_written(past: SessionsOnDisk, query: str) -> None:
    past.add(said("stays"))
    result = await past.bench.call("session_store_sql", description="test", query=query)
    assert result.kind == "failure"
    assert "1 row(s)" in await past.ask("SELECT * FROM turns")
    assert os.listdir(past.bench.root) == []


async def test_a_damaged_index_is_made_again(past: SessionsOnDisk) -> None:
    past.add(said("one"))
    index = Path(past.home.state) / "trimtab-session-store.db"
    for damage in (b"no database" * 1000, b""):
        index.write_bytes(damage)
        assert "| one |" in await past.ask("SELECT user_message FROM turns")
    assert index.stat().st_mode & 0o777 == 0o600


async def test_a_damaged_log_hides_no_other(past: SessionsOnDisk) -> None:
    past.add(said("whole"))
    broken = past.add(said("broken"))
    Path(past.store.folder(broken).events).write_bytes(b'{"type": \xff\0' * 50)
    assert "| whole |" in await past.ask("SELECT user_message FROM turns")
    assert "2 row(s)" in await past.ask("SELECT id FROM sessions")


async def test_characters_no_database_takes_are_replaced(past: SessionsOnDisk) -> None:
    past.add(said("half \ud83d, nul \0 and 日本"))
    assert "日本" in await past.ask("SELECT user_message FROM turns")


async def test_sessions_of_the_cloud_are_refused(past: SessionsOnDisk) -> None:
    result = await past.bench.call(
        "session_store_sql", description="d", query="SELECT 1", source="cloud"
    )
    assert result.kind == "failure"
    assert "this machine" in result.text


def test_a_search_that_nobody_waits_for_ends(past: SessionsOnDisk, tmp_path: Path) -> None:
    past.add(said("one"))
    past.add(said("two"))
    index = PastSessions(past.store, str(tmp_path / "index.db"))
    assert index.refresh(lambda: True) == 2
    assert index.refresh(lambda: False, seconds=-1) == 2
    assert index.refresh(lambda: False) == 0


def test_a_search_that_is_given_up_within_a_session_has_it_left(
    past: SessionsOnDisk, tmp_path: Path
) -> None:
    past.add(said("one"))
    index = PastSessions(past.store, str(tmp_path / "index.db"))
    answers = iter([False])
    assert index.refresh(lambda: next(answers, True)) == 1
    assert index.refresh(lambda: False) == 0


async def test_an_index_that_cannot_be_read_is_named_in_plain_words(bench: Bench) -> None:
    async def fail() -> tuple[str, int]:
        raise PermissionError(13, "Permission denied")

    bench.tools["session_store_sql"] = SessionStoreSql("/sessions", fail)
    text = await bench.text("session_store_sql", description="test", query="SELECT 1")
    assert text == "Past sessions cannot be read: Permission denied."
