"""The trash: which deleted session is listed and restored."""

import os
from pathlib import Path

import pytest

from logkit import SESSION, joined, short_log, store_session
from trimtab.config.paths import Home
from trimtab.contracts.errors import ConfigurationError, SessionNotFound
from trimtab.session.store import SessionStore
from trimtab.session.trash import delete, list_trash, restore

OTHER = SESSION[:8] + "-ffff-4c3a-9e1f-0a1b2c3d4e5f"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(config=str(tmp_path), state=str(tmp_path))


def trashed(home: Home, session_id: str, deleted_at: str, title: str = "") -> str:
    path = Path(home.trash, f"{session_id}@{deleted_at}")
    path.mkdir(parents=True)
    (path / "events.jsonl").write_bytes(joined(short_log()))
    (path / "workspace.yaml").write_text(f"name: {title}\n")
    return str(path)


def test_the_trash_lists_what_was_deleted_last_first(home: Home) -> None:
    assert list_trash(home) == []
    for moment in ("2025", "2027", "2026"):
        trashed(home, f"s{moment}", moment, f"of {moment}")
    Path(home.trash, "no-mark").mkdir()
    Path(home.trash, "@2025").mkdir()
    Path(home.trash, ".x@2025").mkdir()
    Path(home.trash, "file@2025").write_text("")
    found = list_trash(home)
    assert [(entry.id, entry.deleted_at, entry.title) for entry in found] == [
        ("s2027", "2027", "of 2027"),
        ("s2026", "2026", "of 2026"),
        ("s2025", "2025", "of 2025"),
    ]
    assert {entry.size for entry in found} == {len(joined(short_log()))}


def test_an_id_with_a_mark_in_it_is_listed_whole(home: Home) -> None:
    trashed(home, "a@b", "2025")
    assert [(entry.id, entry.deleted_at) for entry in list_trash(home)] == [("a@b", "2025")]


def test_trash_that_is_no_folder_is_a_clear_error(home: Home) -> None:
    Path(home.trash).write_text("")
    with pytest.raises(ConfigurationError, match="Cannot read"):
        list_trash(home)


def test_a_session_is_restored_by_its_id_or_seven_characters_of_it(home: Home) -> None:
    trashed(home, SESSION, "2025")
    with pytest.raises(SessionNotFound, match="sessions trash"):
        restore(home, SESSION[:6])
    entry = restore(home, SESSION[:7].upper())
    assert entry.path == os.path.join(home.session_state, SESSION)
    assert os.listdir(entry.path)
    assert list_trash(home) == []


def test_a_short_id_is_restored_by_the_whole_of_it(home: Home) -> None:
    trashed(home, "abc", "2025")
    assert restore(home, "abc").id == "abc"


def test_an_exact_id_comes_before_a_prefix(home: Home) -> None:
    trashed(home, "session", "2025")
    trashed(home, "session-two", "2026")
    assert restore(home, "session").id == "session"


def test_a_prefix_of_two_sessions_is_not_clear(home: Home) -> None:
    trashed(home, SESSION, "2025")
    trashed(home, SESSION, "2026")
    trashed(home, OTHER, "2027")
    with pytest.raises(SessionNotFound, match=f"{SESSION}, {OTHER}: give the whole id"):
        restore(home, SESSION[:8])
    assert restore(home, SESSION).deleted_at == "2026"
    with pytest.raises(ConfigurationError, match="delete that session before"):
        restore(home, SESSION)


def test_deleting_twice_in_a_moment_gives_two_names_in_order(home: Home, tmp_path: Path) -> None:
    store = SessionStore(home)
    entries = []
    for _ in range(3):
        store_session(tmp_path, short_log())
        entries.append(delete(home, store.folder(SESSION)))
        assert (entries[-1].title, entries[-1].size) == ("", 0)
    times = [entry.deleted_at for entry in entries]
    assert times == sorted(set(times))
    assert [entry.path for entry in entries] == [
        os.path.join(home.trash, f"{SESSION}@{moment}") for moment in times
    ]
    assert os.stat(home.trash).st_mode & 0o777 == 0o700
    assert not os.path.exists(store.folder(SESSION).path)
