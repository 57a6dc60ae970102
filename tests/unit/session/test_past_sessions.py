"""The index of past sessions: what it holds, when it is brought up to date, and its limits."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from logkit import event, joined, store_session
from trimtab.config.paths import Home
from trimtab.session.past_sessions import INDEX, VERSION, PastSessions, prepare_index
from trimtab.session.store import SessionStore


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(config=str(tmp_path), state=str(tmp_path))


@pytest.fixture
def index(home: Home) -> PastSessions:
    return PastSessions(SessionStore(home), os.path.join(home.state, INDEX))


def said(text: str) -> bytes:
    return event("user.message", {"content": text}, 1)


def rows(index: PastSessions, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(index.path)) as database:
        return database.execute(query).fetchall()


def never() -> bool:
    return False


def test_a_session_is_indexed_with_its_metadata(index: PastSessions, tmp_path: Path) -> None:
    about = "name: Mine\ncwd: /w\nbranch: b\nrepository: a/b\ngit_root: /g\ncreated_at: '2024'\n"
    store_session(tmp_path, [said("x")], "one", workspace_yaml=about)
    store_session(tmp_path, [said("y")], "two", workspace_yaml="git_root: /g\n")
    store_session(tmp_path, [said("z")], "three", workspace_yaml="a: [")
    assert index.refresh(never) == 0
    time = "2025-11-15T20:00:01.000Z"
    assert rows(index, "SELECT * FROM sessions ORDER BY id") == [
        ("one", "Mine", "Mine", "/w", "a/b", "b", "2024", time),
        ("three", None, "z", None, None, None, time, time),
        ("two", None, "y", None, "/g", None, time, time),
    ]
    assert rows(index, "PRAGMA user_version") == [(VERSION,)]
    assert Path(index.path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_index_is_for_the_owner_alone_whatever_the_umask(
    index: PastSessions, umask: int
) -> None:
    before = os.umask(umask)
    try:
        assert index.refresh(never) == 0
    finally:
        os.umask(before)
    assert Path(index.path).stat().st_mode & 0o777 == 0o600


def test_a_session_that_its_client_keeps_out_is_not_indexed(
    index: PastSessions, tmp_path: Path
) -> None:
    store_session(tmp_path, [said("x")], "out", workspace_yaml="session_store: false\n")
    store_session(tmp_path, [said("y")], "in", workspace_yaml="session_store: true\n")
    assert index.refresh(never) == 0
    assert rows(index, "SELECT id FROM sessions") == [("in",)]
    assert len(rows(index, "SELECT * FROM indexed_logs")) == 2, "it is not looked at again"


def test_only_what_changed_is_read_again(index: PastSessions, tmp_path: Path) -> None:
    folders = {name: store_session(tmp_path, [said(name)], name) for name in ("a", "b", "c")}
    assert index.refresh(lambda: True) == 3
    assert index.refresh(never) == 0
    assert index.refresh(lambda: True) == 0, "nothing is left to do"
    (folders["a"] / "events.jsonl").write_bytes(joined([said("a"), said("again")]))
    (folders["b"] / "workspace.yaml").write_text("name: B\n")
    assert index.refresh(lambda: True) == 2
    before = Path(index.path).stat().st_ino
    assert index.refresh(never) == 0
    assert Path(index.path).stat().st_ino == before, "the index was not rebuilt"
    assert rows(index, "SELECT count(*) FROM turns WHERE session_id = 'a'") == [(2,)]
    assert rows(index, "SELECT name FROM sessions WHERE id = 'b'") == [("B",)]
    assert rows(index, "SELECT count(*) FROM search_index") == [(4,)]


def test_the_newest_session_is_read_first(index: PastSessions, tmp_path: Path) -> None:
    for age, name in enumerate(("new", "middle", "old")):
        log = store_session(tmp_path, [said(name)], name) / "events.jsonl"
        os.utime(log, (1_000_000 - age, 1_000_000 - age))
    done: list[bool] = []

    def stopped() -> bool:
        done.append(True)
        return len(done) > 2  # asked before a session, and once within it

    assert index.refresh(stopped) == 2
    assert rows(index, "SELECT id FROM sessions") == [("new",)]


def test_a_session_that_is_given_up_half_way_is_left(index: PastSessions, tmp_path: Path) -> None:
    store_session(tmp_path, [said("x")], "a")
    answers = iter([False])
    assert index.refresh(lambda: next(answers, True)) == 1
    assert rows(index, "SELECT id FROM sessions") == []
    assert index.refresh(never) == 0


def test_a_session_that_is_gone_leaves_no_row(index: PastSessions, tmp_path: Path) -> None:
    text = "see github.com/a/b/pull/1"
    call = {"toolCallId": "c", "toolName": "edit", "arguments": {"path": "a.py"}}
    lines = [
        said(text),
        event("tool.execution_start", call, 2),
        event("session.compaction_complete", {"summaryContent": "sum"}, 3),
    ]
    folder = store_session(tmp_path, lines, "a")
    store_session(tmp_path, [said("stays")], "b")
    assert index.refresh(never) == 0
    tables = ("turns", "checkpoints", "session_files", "session_refs", "search_index",
              "indexed_logs")  # fmt: skip
    for table in tables:
        assert rows(index, f"SELECT * FROM {table} WHERE session_id = 'a'"), table
    folder.rename(tmp_path / "gone")
    assert index.refresh(never) == 0
    for table in tables:
        assert not rows(index, f"SELECT * FROM {table} WHERE session_id = 'a'"), table
    assert rows(index, "SELECT id FROM sessions") == [("b",)]


def test_a_folder_without_files_is_left_out(index: PastSessions, tmp_path: Path) -> None:
    (tmp_path / "session-state" / "empty").mkdir(parents=True)
    store_session(tmp_path, [said("x")], "a")
    half = store_session(tmp_path, [], "half", workspace_yaml="name: Half\n")
    (half / "events.jsonl").unlink()
    assert index.refresh(lambda: True) == 2
    assert index.refresh(never) == 0
    found = rows(index, "SELECT id, name FROM sessions ORDER BY id")
    assert found == [("a", None), ("half", "Half")]


@pytest.mark.parametrize("damage", ["rubbish", "version"])
def test_an_index_that_is_damaged_or_of_another_version_is_rebuilt(
    index: PastSessions, tmp_path: Path, damage: str
) -> None:
    store_session(tmp_path, [said("x")], "a")
    assert index.refresh(never) == 0
    if damage == "version":
        with closing(sqlite3.connect(index.path)) as database:
            database.execute("DELETE FROM turns")
            database.execute(f"PRAGMA user_version = {VERSION + 1}")
            database.commit()
    else:
        Path(index.path).write_bytes(b"no database" * 1000)
    Path(index.path + "-journal").write_bytes(b"old")
    assert index.refresh(never) == 0
    assert rows(index, "SELECT user_message FROM turns") == [("x",)]


def test_a_folder_in_place_of_the_index_is_left_alone(index: PastSessions, tmp_path: Path) -> None:
    Path(index.path).mkdir()
    store_session(tmp_path, [said("x")], "a")
    with pytest.raises(OSError, match="Is a directory"):
        index.refresh(never)
    assert Path(index.path).is_dir()


def test_a_database_that_cannot_be_opened_raises_what_it_says(
    index: PastSessions, tmp_path: Path
) -> None:
    store_session(tmp_path, [said("x")], "a")
    assert index.refresh(never) == 0
    with closing(sqlite3.connect(index.path)) as database:
        database.execute("DROP TABLE turns")
        database.execute("CREATE VIEW turns AS SELECT 1 AS session_id")
        database.commit()
    (tmp_path / "session-state" / "a" / "events.jsonl").write_bytes(joined([said("y")]))
    before = Path(index.path).stat().st_ino
    with pytest.raises(sqlite3.OperationalError):
        index.refresh(never)
    assert Path(index.path).stat().st_ino == before


def test_texts_are_stored_as_far_as_the_database_can(index: PastSessions, tmp_path: Path) -> None:
    line = b'{"type":"user.message","data":{"content":"half \\ud83d \xc3\xa9"},"id":"1"}'
    store_session(tmp_path, [line], "a")
    assert index.refresh(never) == 0
    assert rows(index, "SELECT user_message FROM turns") == [("half ? é",)]


async def test_the_index_lies_beside_the_sessions(home: Home, tmp_path: Path) -> None:
    store_session(tmp_path, [said("x")], "a")
    assert await prepare_index(home) == (os.path.join(home.state, INDEX), 0)
    with closing(sqlite3.connect(os.path.join(home.state, INDEX))) as database:
        database.execute("DROP TABLE turns")
        database.execute("CREATE VIEW turns AS SELECT 1 AS session_id")
        database.commit()
    store_session(tmp_path, [said("y")], "b")
    with pytest.raises(OSError, match=f"the index .*{INDEX} fails"):
        await prepare_index(home)
