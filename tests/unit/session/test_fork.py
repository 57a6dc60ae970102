import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from logkit import SESSION, chain, event_id, lines_in, short_log, store_session
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError, SessionInUse, SessionNotFound, UsageError
from trimtab.session.folder import SessionFolder
from trimtab.session.fork import Cut, fork
from trimtab.session.store import SessionStore
from trimtab.session.trash import delete, list_trash, restore


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(Home(config=str(tmp_path), state=str(tmp_path)))


@pytest.fixture
def source(store: SessionStore, tmp_path: Path) -> SessionFolder:
    store_session(
        tmp_path, short_log(), workspace_yaml="name: first\ncwd: /w\n", plan_md="# Plan\n"
    )
    return store.folder(SESSION)


def test_a_fork_has_the_same_events_under_its_own_id(
    store: SessionStore, source: SessionFolder
) -> None:
    before = Path(source.events).read_bytes()
    copy = fork(store, source, Cut(), name="second")
    lines = lines_in(copy.events)
    start = json.loads(lines[0])
    assert start["data"]["sessionId"] == copy.id != source.id
    assert start["id"] == json.loads(short_log()[0])["id"]
    assert lines[1:] == short_log()[1:]
    metadata = copy.read_metadata()
    assert (metadata["id"], metadata["name"], metadata["cwd"]) == (copy.id, "second", "/w")
    assert metadata["forked_from"] == source.id
    assert Path(copy.plan).read_text() == "# Plan\n"
    assert Path(source.events).read_bytes() == before
    _, log = store.open(copy.id)
    assert log.findings == ()
    log.close()
    assert store.latest() == copy.id


def test_a_fork_takes_everything_that_belongs_to_the_session(
    store: SessionStore, source: SessionFolder
) -> None:
    os.makedirs(source.blobs)
    (Path(source.blobs) / "abc").write_bytes(b"big")
    os.makedirs(source.files + "/deep")
    (Path(source.files) / "deep" / "note.txt").write_text("note")
    with closing(sqlite3.connect(source.database)) as database:
        database.execute("create table todos (title)")
        database.execute("insert into todos values ('one')")
        database.commit()
        copy = fork(store, source, Cut())
    assert (Path(copy.blobs) / "abc").read_bytes() == b"big"
    (Path(copy.files) / "deep" / "note.txt").write_text("changed")
    assert (Path(source.files) / "deep" / "note.txt").read_text() == "note"
    with closing(sqlite3.connect(copy.database)) as database:
        assert database.execute("select title from todos").fetchall() == [("one",)]
    assert "session.lock" not in os.listdir(copy.path)


def test_a_fork_ends_at_the_event_or_turn_asked_for(
    store: SessionStore, source: SessionFolder, tmp_path: Path
) -> None:
    assert len(lines_in(fork(store, source, Cut(event=event_id(4))).events)) == 5
    prompt = ("user.message", {"content": "x"})
    answer = ("assistant.message", {"content": "y", "messageId": "m"})
    three = chain([prompt, answer, prompt, answer, prompt, answer])
    store_session(tmp_path, three, "three")
    for turn in (1, 2, 3):
        copy = fork(store, store.folder("three"), Cut(turn=turn))
        assert lines_in(copy.events) == three[: 2 * turn]


@pytest.mark.parametrize("cut", [Cut(event="nothing"), Cut(turn=9)])
def test_a_fork_that_cannot_be_made_leaves_nothing(
    store: SessionStore, source: SessionFolder, cut: Cut
) -> None:
    with pytest.raises(UsageError):
        fork(store, source, cut)
    assert os.listdir(store.home.session_state) == [SESSION]


def test_a_session_in_use_or_damaged_can_be_forked(
    store: SessionStore, source: SessionFolder
) -> None:
    _, log = store.open(source.id)
    assert len(lines_in(fork(store, source, Cut()).events)) == 12
    log.close()
    damaged = Path(source.events).read_bytes().replace(b"\n", b"\nrubbish\n", 3)
    Path(source.events).write_bytes(damaged)
    assert len(lines_in(fork(store, source, Cut()).events)) == 12
    assert Path(source.events).read_bytes() == damaged


def test_a_deleted_session_is_in_the_trash_and_comes_back_whole(
    store: SessionStore, source: SessionFolder
) -> None:
    before = {name: Path(source.path, name).read_bytes() for name in os.listdir(source.path)}
    entry = delete(store.home, source)
    assert store.list() == []
    (listed,) = list_trash(store.home)
    assert (listed.id, listed.path, listed.title) == (source.id, entry.path, "first")
    assert listed.deleted_at == entry.deleted_at
    restore(store.home, source.id[:8])
    assert list_trash(store.home) == []
    after = {name: Path(source.path, name).read_bytes() for name in before}
    assert after == before
    _, log = store.open(source.id)
    log.close()


def test_a_session_in_use_is_not_deleted(store: SessionStore, source: SessionFolder) -> None:
    _, log = store.open(source.id)
    with pytest.raises(SessionInUse):
        delete(store.home, source)
    assert os.path.exists(source.events)
    log.append(short_log()[0])
    log.close()


def test_restoring_never_replaces_a_session(store: SessionStore, source: SessionFolder) -> None:
    delete(store.home, source)
    _, log = store.create(SESSION, cwd="/")
    log.close()
    with pytest.raises(ConfigurationError, match="exists"):
        restore(store.home, SESSION)
    assert len(list_trash(store.home)) == 1


def test_the_one_deleted_last_is_restored(store: SessionStore, source: SessionFolder) -> None:
    delete(store.home, source)
    _, log = store.create(SESSION, cwd="/", name="later")
    log.close()
    later = delete(store.home, source)
    assert restore(store.home, SESSION).deleted_at == later.deleted_at
    assert store.list()[0].name == "later"


def test_a_session_is_deleted_as_often_as_one_likes_within_a_millisecond(
    store: SessionStore, source: SessionFolder
) -> None:
    times = []
    for _ in range(50):
        times.append(delete(store.home, source).deleted_at)
        _, log = store.create(SESSION, cwd="/")
        log.close()
    assert times == sorted(set(times))
    assert len(list_trash(store.home)) == 50


def test_what_is_not_in_the_trash_cannot_be_restored(
    store: SessionStore, source: SessionFolder
) -> None:
    with pytest.raises(SessionNotFound, match="trash"):
        restore(store.home, SESSION)
    delete(store.home, source)
    for wrong in ("", "5f0c", "../" + SESSION):
        with pytest.raises(SessionNotFound):
            restore(store.home, wrong)
