import json
import os
import resource
import shutil
import stat
from pathlib import Path

import pytest

from logkit import SESSION, event, joined, short_log, store_session
from trimtab.config.paths import Home
from trimtab.contracts.errors import (
    ConfigurationError,
    SessionInUse,
    SessionNotFound,
    StorageError,
    TrimtabError,
    UsageError,
)
from trimtab.session.log import EventLog
from trimtab.session.store import SessionStore

OTHER = "5f0c8a1e-ffff-4c3a-9e1f-0a1b2c3d4e5f"


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(Home(config=str(tmp_path), state=str(tmp_path)))


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.proves("VSC-19")
def test_a_session_is_a_folder_with_a_log_and_a_workspace_file(
    store: SessionStore, tmp_path: Path
) -> None:
    folder, log = store.create(cwd="/work", git={"git_root": "/work", "branch": "main"})
    log.close()
    assert folder.path == str(tmp_path / "session-state" / folder.id)
    assert sorted(os.listdir(folder.path)) == ["events.jsonl", "session.lock", "workspace.yaml"]
    metadata = folder.read_metadata()
    assert metadata["id"] == folder.id
    assert metadata["cwd"] == metadata["git_root"] == "/work"
    assert metadata["branch"] == "main"
    assert metadata["created_at"] == metadata["updated_at"]
    assert "name" not in metadata


def test_a_session_is_private_whatever_the_umask(store: SessionStore) -> None:
    for umask in (0, 0o777):
        before = os.umask(umask)
        try:
            folder, log = store.create(cwd="/")
            log.close()
        finally:
            os.umask(before)
        assert mode(folder.path) == mode(store.home.session_state) == 0o700
        assert {mode(entry.path) for entry in os.scandir(folder.path)} == {0o600}


def test_a_chosen_id_must_be_a_plain_name_and_new(store: SessionStore) -> None:
    folder, log = store.create(SESSION.upper(), cwd="/", name="mine")
    log.close()
    assert folder.id == SESSION
    assert folder.read_metadata()["name"] == "mine"
    with pytest.raises(ConfigurationError, match=f"--resume={SESSION}"):
        store.create(SESSION, cwd="/")
    for wrong in ("-x", "../../etc", ".hidden", "a b", "é", "x" * 129):
        with pytest.raises(UsageError):
            store.create(wrong, cwd="/")


def test_metadata_updates_keep_what_others_wrote(store: SessionStore) -> None:
    folder, log = store.create(cwd="/", name="before")
    log.close()
    with open(folder.workspace_file, "a") as file:
        file.write("fork_count: 3\nsummary: |\n  two\n  lines\n")
    folder.update_metadata(name="after", user_named=True)
    metadata = folder.read_metadata()
    assert (metadata["name"], metadata["fork_count"]) == ("after", 3)
    assert metadata["summary"] == "two\nlines\n"
    assert metadata["updated_at"] >= metadata["created_at"]


def test_an_unreadable_workspace_file_is_set_aside_by_an_update(store: SessionStore) -> None:
    folder, log = store.create(cwd="/")
    log.close()
    Path(folder.workspace_file).write_bytes(b"a: [\0")
    folder.update_metadata(name="x")
    assert folder.read_metadata()["name"] == "x"
    assert Path(folder.workspace_file + ".damaged").read_bytes() == b"a: [\0"


def test_opening_finds_the_events_again(store: SessionStore, tmp_path: Path) -> None:
    store_session(tmp_path, short_log())
    folder, log = store.open(SESSION)
    assert (folder.id, log.count) == (SESSION, 12)
    with pytest.raises(SessionInUse, match=SESSION):
        store.open(SESSION)
    log.close()


def test_a_failed_resume_makes_nothing(store: SessionStore, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        store.open(SESSION)
    assert not (tmp_path / "session-state").exists()
    (tmp_path / "session-state" / SESSION).mkdir(parents=True)
    with pytest.raises(SessionNotFound, match="no event log"):
        store.open(SESSION)
    assert os.listdir(tmp_path / "session-state" / SESSION) == []
    for outside in ("..", "../x", "a/b", ".hidden", "", "a\0b"):
        with pytest.raises(UsageError):
            store.open(outside)


def test_a_session_is_found_by_id_prefix_or_name(store: SessionStore, tmp_path: Path) -> None:
    store_session(tmp_path, short_log(), SESSION, workspace_yaml='name: "Fix It"\ncwd: /a\n')
    store_session(tmp_path, short_log(), OTHER, workspace_yaml="name: other\ncwd: /b\n")
    store_session(tmp_path, short_log(), "odd-name")
    assert store.find(SESSION) == store.find(SESSION.upper()) == SESSION
    assert store.find(SESSION[:13]) == SESSION
    assert store.find(OTHER[:12].upper()) == OTHER
    assert store.find("Fix It") == store.find("fix it") == SESSION
    assert store.find("odd-name") == "odd-name"
    assert store.find(SESSION[:8], cwd="/b") == OTHER


def test_what_is_not_found_or_not_clear_names_the_likely_ones(
    store: SessionStore, tmp_path: Path
) -> None:
    store_session(tmp_path, short_log(), SESSION, workspace_yaml="name: refactor parser\n")
    store_session(tmp_path, short_log(), OTHER)
    with pytest.raises(SessionNotFound, match=f"{SESSION}, {OTHER}"):
        store.find(SESSION[:8])
    with pytest.raises(SessionNotFound, match="refactor parser"):
        store.find("refactor parse")
    with pytest.raises(SessionNotFound, match=SESSION):
        store.find(SESSION[:4])
    with pytest.raises(SessionNotFound, match="sessions list"):
        store.find("../" + SESSION)


def test_the_latest_session_of_this_folder_comes_first(store: SessionStore, tmp_path: Path) -> None:
    assert store.latest() is None
    for number, (name, cwd) in enumerate([("a", "/here"), ("b", "/here"), ("c", "/there")]):
        store_session(tmp_path, [event("x", {}, number)], name, workspace_yaml=f"cwd: {cwd}\n")
    (tmp_path / "session-state" / "empty").mkdir()
    assert store.latest() == "c"
    assert store.latest("/here") == "b"
    assert store.latest("/nowhere") == "c"


def test_the_list_is_newest_first_and_survives_bad_folders(
    store: SessionStore, tmp_path: Path
) -> None:
    store_session(tmp_path, [event("x", {}, 1)], "old", workspace_yaml="name: Old\n")
    store_session(tmp_path, short_log(), "new")
    store_session(tmp_path, [], "rubbish", workspace_yaml="updated_at: '2000'\n")
    (tmp_path / "session-state" / "rubbish" / "events.jsonl").write_bytes(b"\xff" * 99)
    (tmp_path / "session-state" / "missing").mkdir()
    store_session(tmp_path, [], "folder", workspace_yaml="a: [")
    (tmp_path / "session-state" / "folder" / "events.jsonl").unlink()
    (tmp_path / "session-state" / "folder" / "events.jsonl").mkdir()
    (tmp_path / "session-state" / "a file").write_text("")
    (tmp_path / "session-state" / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "session-state" / "missing" / "workspace.yaml")
    listed = {summary.id: summary for summary in store.list()}
    assert set(listed) == {"old", "new", "rubbish", "missing", "folder"}
    order = [summary.id for summary in store.list()]
    assert order.index("new") < order.index("old") < order.index("rubbish")
    assert listed["old"].title == "Old"
    assert listed["new"].title == 'Was heißt "naïve"?'
    assert (listed["new"].cwd, listed["new"].branch) == ("/work", "main")
    assert listed["new"].problem is None
    for bad in ("rubbish", "missing", "folder"):
        assert listed[bad].problem


def test_the_list_says_which_sessions_are_in_use(store: SessionStore) -> None:
    _, log = store.create(cwd="/")
    assert [summary.in_use for summary in store.list()] == [True]
    log.close()
    assert [summary.in_use for summary in store.list()] == [False]


def test_the_list_reads_only_the_ends_of_a_log(store: SessionStore, tmp_path: Path) -> None:
    folder = store_session(tmp_path, short_log()[:4])
    path = folder / "events.jsonl"
    with open(path, "r+b") as file:
        file.seek(50_000_000_000)  # a hole: reading it all would take a minute
        file.write(b"\n" + event("x", {}, 59) + b"\n")
    (summary,) = store.list()
    assert summary.size > 50_000_000_000
    assert summary.updated_at == "2025-11-15T20:00:59.000Z"


def test_a_session_that_cannot_be_made_leaves_nothing(store: SessionStore, tmp_path: Path) -> None:
    state = tmp_path / "session-state"
    state.write_text("")
    with pytest.raises(ConfigurationError, match="move it away"):
        store.create(cwd="/")
    state.unlink()


def test_a_folder_of_the_real_program_opens_and_goes_on(
    store: SessionStore, tmp_path: Path
) -> None:
    lines = short_log()
    lines[4:4] = [lines[2].replace(b"000002", b"000077")]  # the system message repeated
    lines[6:6] = [event("permission.requested", {"requestId": "r", "permissionRequest": {}}, 78)]
    store_session(tmp_path, lines, workspace_yaml="id: x\ncwd: /w\nsummary: |\n  Two\n  lines\n")
    _, log = store.open(SESSION)
    assert log.findings == ()
    assert log.count == len(lines)
    log.append(json.dumps({"type": "session.resume", "data": {}, "id": "r"}).encode())
    log.close()
    assert store.list()[0].title == "Two\nlines\n"
    path = tmp_path / "session-state" / SESSION / "events.jsonl"
    assert path.read_bytes().startswith(joined(lines))
    reopened = EventLog.open(str(path))
    reopened.close()
    assert reopened.last_id == "r"


def test_a_session_without_its_log_is_listed_with_the_problem(store: SessionStore) -> None:
    folder, log = store.create(cwd="/work", name="mine")
    log.close()
    os.unlink(folder.events)
    (summary,) = store.list()
    assert (summary.id, summary.name, summary.size) == (folder.id, "mine", 0)
    assert summary.problem is not None
    assert summary.updated_at == summary.created_at != ""


def test_the_first_metadata_of_a_session_are_complete(store: SessionStore) -> None:
    for name in (None, "mine", ""):
        folder, log = store.create(cwd="/work", name=name, git={"branch": None})
        log.close()
        metadata = folder.read_metadata()
        assert metadata.pop("created_at") == metadata.pop("updated_at")
        assert metadata == {
            "id": folder.id,
            "cwd": "/work",
            **({} if name is None else {"name": name}),
            "user_named": name is not None,
            "client_name": "trimtab",
            "summary_count": 0,
        }


@pytest.mark.parametrize("chosen", ["a", "A-b_c.9", "x" * 128])
def test_a_plain_name_may_be_chosen_as_id(store: SessionStore, chosen: str) -> None:
    folder, log = store.create(chosen, cwd="/")
    log.close()
    assert (folder.id, store.exists(chosen)) == (chosen, True)


@pytest.mark.parametrize("chosen", ["", "_x", "-", ".", "a/b", "a\n", "ä", "x" * 129])
def test_any_other_name_is_refused(store: SessionStore, chosen: str) -> None:
    with pytest.raises(UsageError, match="not a valid session id"):
        store.create(chosen, cwd="/")
    assert not store.exists(chosen)


def test_an_id_that_could_leave_the_folder_is_never_looked_for(store: SessionStore) -> None:
    for wrong in ("", "..", ".x", "a/b", "a\\b", "a\0b"):
        assert not store.exists(wrong)
        with pytest.raises(UsageError, match="sessions list"):
            store.folder(wrong)


def test_a_session_that_cannot_be_written_leaves_no_folder(store: SessionStore) -> None:
    os.makedirs(store.home.session_state)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(StorageError, match=r"Cannot write .*workspace\.yaml"):
            store.create(cwd="/")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(store.home.session_state) == []


def test_a_session_whose_log_cannot_be_created_leaves_no_folder(store: SessionStore) -> None:
    os.makedirs(store.home.session_state)
    free = os.open(store.home.session_state, os.O_RDONLY)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    try:
        with pytest.raises(TrimtabError, match=r"Cannot create .*events\.jsonl"):
            store.create(cwd="/")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(store.home.session_state) == []


def test_a_prefix_needs_seven_digits(store: SessionStore, tmp_path: Path) -> None:
    store_session(tmp_path, short_log(), SESSION)
    store_session(tmp_path, short_log(), "odd-name-of-nine")
    assert store.find(SESSION[:7]) == SESSION
    assert store.find(SESSION[:10].upper()) == SESSION
    for short in (SESSION[:6], "odd-name"):
        with pytest.raises(SessionNotFound, match="No such session"):
            store.find(short)


def test_of_several_names_the_exact_one_counts(store: SessionStore, tmp_path: Path) -> None:
    store_session(tmp_path, short_log(), "one", workspace_yaml="name: Fix\n")
    store_session(tmp_path, short_log(), "two", workspace_yaml="name: fix\n")
    store_session(tmp_path, short_log(), "three")
    assert (store.find("Fix"), store.find("fix")) == ("one", "two")
    with pytest.raises(SessionNotFound, match="'FIX' could be any of one, two: give the whole id"):
        store.find("FIX")


def test_the_folder_decides_only_if_it_has_exactly_one_of_them(
    store: SessionStore, tmp_path: Path
) -> None:
    for name, cwd in (("one", "/a"), ("two", "/b"), ("three", "/b")):
        store_session(tmp_path, short_log(), name, workspace_yaml=f"name: same\ncwd: {cwd}\n")
    assert store.find("same", cwd="/a") == "one"
    for elsewhere in ("/b", "/c", None):
        with pytest.raises(SessionNotFound, match="one, three, two"):
            store.find("same", cwd=elsewhere)
    store_session(tmp_path, short_log(), "four", workspace_yaml="name: other\ncwd: /a\n")
    assert store.find("other", cwd="/c") == "four"
    store_session(tmp_path, short_log(), "five", workspace_yaml="name: other\n")
    with pytest.raises(SessionNotFound, match="five, four"):
        store.find("other")


def test_what_is_not_found_names_at_most_a_few_likely_ones(
    store: SessionStore, tmp_path: Path
) -> None:
    for number in range(5):
        store_session(tmp_path, short_log(), f"abcdefghijklmnop-{number}")
    with pytest.raises(SessionNotFound) as caught:
        store.find("abc")
    hint = caught.value.message.partition("Did you mean ")[2].partition("?")[0]
    assert len(set(hint.split(" or "))) == len(hint.split(" or ")) == 3
    with pytest.raises(SessionNotFound) as caught:
        store.find("abcdefghijklmnop-9")
    assert caught.value.message.count(" or ") == 2
    for unlike in ("ab", "zzzz"):
        with pytest.raises(SessionNotFound) as caught:
            store.find(unlike)
        assert caught.value.message == (
            f"No such session: {unlike!r}. See `trimtab sessions list` for all of them."
        )


def test_a_name_is_suggested_as_well(store: SessionStore, tmp_path: Path) -> None:
    store_session(tmp_path, short_log(), SESSION, workspace_yaml="name: release notes\n")
    with pytest.raises(SessionNotFound, match="Did you mean release notes\\?"):
        store.find("release note")


def test_of_two_sessions_used_at_the_same_time_the_latest_is_always_the_same(
    store: SessionStore, tmp_path: Path
) -> None:
    for name in ("b", "c", "a"):
        store_session(tmp_path, [event("x", {}, 1)], name)
    store_session(tmp_path, [event("x", {}, 2)], "0")
    (tmp_path / "session-state" / "z").mkdir()
    assert store.latest() == "0"
    (tmp_path / "session-state" / "0" / "events.jsonl").unlink()
    assert store.latest() == store.latest("/x") == "c"


def test_only_folders_of_sessions_are_listed(store: SessionStore, tmp_path: Path) -> None:
    assert store.folders() == []
    state = tmp_path / "session-state"
    for name in ("a", ".fork-b"):
        (state / name).mkdir(parents=True)
    (state / "file").write_text("")
    assert [folder.id for folder in store.folders()] == ["a"]
    (state / "file").rename(tmp_path / "file")
    shutil.rmtree(state)
    (tmp_path / "file").rename(state)
    with pytest.raises(ConfigurationError, match="Cannot read"):
        store.folders()
