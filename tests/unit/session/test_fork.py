import json
import os
import resource
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from logkit import SESSION, chain, event_id, lines_in, short_log, store_session
from trimtab.config.paths import Home
from trimtab.contracts.errors import (
    ConfigurationError,
    SessionInUse,
    SessionNotFound,
    StorageError,
    UsageError,
)
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


def test_a_fork_without_a_name_keeps_the_name_and_who_gave_it(
    store: SessionStore, source: SessionFolder
) -> None:
    Path(source.workspace_file).write_text("name: first\nuser_named: false\ncreated_at: '2001'\n")
    metadata = fork(store, source, Cut()).read_metadata()
    assert (metadata["name"], metadata["user_named"]) == ("first", False)
    assert metadata["created_at"] == metadata["updated_at"] > "2001"
    metadata = fork(store, source, Cut(), name="second").read_metadata()
    assert (metadata["name"], metadata["user_named"]) == ("second", True)


def test_unreadable_metadata_do_not_prevent_a_fork(
    store: SessionStore, source: SessionFolder
) -> None:
    Path(source.workspace_file).write_text("a: [")
    copy = fork(store, source, Cut())
    assert set(copy.read_metadata()) == {"id", "forked_from", "created_at", "updated_at"}


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("umask", [0, 0o777])
def test_a_fork_is_for_the_owner_alone_whatever_the_umask(
    store: SessionStore, source: SessionFolder, umask: int
) -> None:
    os.makedirs(source.files + "/deep")
    program = Path(source.files, "run.sh")
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    Path(source.plan).chmod(0o644)
    with closing(sqlite3.connect(source.database)) as database:
        database.execute("create table todos (title)")
    before = os.umask(umask)
    try:
        copy = fork(store, source, Cut())
    finally:
        os.umask(before)
    assert mode(copy.path) == mode(copy.files) == mode(copy.files + "/deep") == 0o700
    assert mode(copy.files + "/run.sh") == 0o700
    files = (copy.events, copy.workspace_file, copy.plan, copy.database)
    assert [mode(path) for path in files] == [0o600] * 4


def test_a_fork_copies_files_with_their_times_and_links_as_links(
    store: SessionStore, source: SessionFolder
) -> None:
    os.makedirs(source.files)
    note = Path(source.files, "note.txt")
    note.write_bytes(b"x" * 3_000_000)
    os.utime(note, ns=(1_000_000_007, 2_000_000_009))
    Path(source.files, "link").symlink_to("note.txt")
    Path(source.files, "half.tmp").write_text("not yet")
    Path(source.path, "top-link").symlink_to("plan.md")
    Path(source.path, "folder-link").symlink_to("files")
    copy = fork(store, source, Cut())
    copied = Path(copy.files, "note.txt")
    assert copied.read_bytes() == note.read_bytes()
    assert copied.stat().st_mtime_ns == 2_000_000_009
    assert copied.stat().st_ino != note.stat().st_ino
    assert os.readlink(Path(copy.files, "link")) == "note.txt"
    assert sorted(os.listdir(copy.files)) == ["link", "note.txt"]
    assert not {"top-link", "folder-link"} & set(os.listdir(copy.path))


def test_a_fork_shares_what_never_changes_and_leaves_files_of_the_log(
    store: SessionStore, source: SessionFolder
) -> None:
    for folder in (source.blobs, source.git_objects, source.checkpoints):
        os.makedirs(folder + "/ab")
        Path(folder, "ab", "cd").write_bytes(b"data")
    for name in (
        "events.jsonl.damaged-1",
        "workspace.yaml.damaged",
        "session.lock",
        "session.db-x",
    ):
        Path(source.path, name).write_text("x")
    copy = fork(store, source, Cut())
    shared = [
        os.path.samefile(f"{old}/ab/cd", f"{new}/ab/cd")
        for old, new in (
            (source.blobs, copy.blobs),
            (source.git_objects, copy.git_objects),
            (source.checkpoints, copy.checkpoints),
        )
    ]
    assert shared == [True, True, False]
    assert sorted(os.listdir(copy.path)) == [
        *("blobs", "checkpoints", "events.jsonl", "git-objects", "plan.md", "workspace.yaml")
    ]


def test_a_file_that_is_no_database_is_copied_as_it_is(
    store: SessionStore, source: SessionFolder
) -> None:
    Path(source.database).write_bytes(b"rubbish" * 1000)
    copy = fork(store, source, Cut())
    assert Path(copy.database).read_bytes() == b"rubbish" * 1000


def test_a_large_log_is_forked_as_a_whole(
    store: SessionStore, source: SessionFolder, tmp_path: Path
) -> None:
    lines = chain([("x", {"text": "y" * 60_000}) for _ in range(60)])
    store_session(tmp_path, lines, "large")
    copy = fork(store, store.folder("large"), Cut())
    assert lines_in(copy.events) == lines
    assert os.path.getsize(copy.events) == sum(len(line) + 1 for line in lines)


@pytest.mark.parametrize("data", ["5", "[]", '"x"'])
def test_a_first_event_of_another_form_is_kept(
    store: SessionStore, tmp_path: Path, data: str
) -> None:
    line = b'{"type":"session.start","data":%s,"id":"1"}' % data.encode()
    store_session(tmp_path, [line], "odd")
    assert lines_in(fork(store, store.folder("odd"), Cut()).events) == [line]


def test_a_fork_before_the_first_prompt_has_no_turn(
    store: SessionStore, source: SessionFolder
) -> None:
    assert lines_in(fork(store, source, Cut(turn=0)).events)[1:] == short_log()[1:3]
    assert len(lines_in(fork(store, source, Cut(turn=1)).events)) == 12
    with pytest.raises(UsageError, match="has only 1 turn: choose"):
        fork(store, source, Cut(turn=2))
    with pytest.raises(UsageError, match=f"has no event 'nothing': .*show {SESSION} --events"):
        fork(store, source, Cut(event="nothing"))
    last = event_id(11)
    assert len(lines_in(fork(store, source, Cut(event=last)).events)) == 12


def test_a_fork_that_fails_half_way_leaves_nothing(
    store: SessionStore, source: SessionFolder
) -> None:
    Path(source.plan).write_bytes(b"x" * 50_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(StorageError, match="Cannot fork the session into"):
            fork(store, source, Cut())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(store.home.session_state) == [SESSION]


def test_a_database_in_use_is_copied_with_what_is_not_in_its_main_file_yet(
    store: SessionStore, source: SessionFolder
) -> None:
    with closing(sqlite3.connect(source.database)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("create table todos (title)")
        database.execute("insert into todos values ('one')")
        database.commit()
        copy = fork(store, source, Cut())
    with closing(sqlite3.connect(copy.database)) as database:
        assert database.execute("select title from todos").fetchall() == [("one",)]


def test_a_fork_into_a_home_that_is_no_folder_says_so(
    source: SessionFolder, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "session-state").write_text("")
    home = Home(config=str(tmp_path / "other"), state=str(tmp_path / "other"))
    with pytest.raises(ConfigurationError, match="is not a folder"):
        fork(SessionStore(home), source, Cut())
