"""Operations on stored sessions."""

import json
from pathlib import Path

import pytest

from logkit import SESSION, joined, short_log, store_session
from trimtab.contracts.errors import ConfigurationError, SessionNotFound, UsageError
from trimtab.session.archive import Archive, Cut


def test_the_event_before_another_is_the_one_above_it_in_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "session-state" / SESSION
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(joined(short_log()))
    archive = Archive({"COPILOT_HOME": str(tmp_path)})
    ids = [record.id for record in archive.all_records(SESSION)]
    assert len(ids) > 5
    assert [archive.event_before(SESSION, each) for each in ids[1:]] == ids[:-1]
    with pytest.raises(UsageError, match="is the first event"):
        archive.event_before(SESSION, ids[0])
    with pytest.raises(UsageError, match=r"Event .* not found"):
        archive.event_before(SESSION, "nosuch")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    store_session(tmp_path, short_log(), workspace_yaml="name: Mine\ncwd: /w\n")
    return Archive({"COPILOT_HOME": str(tmp_path)}, cwd="/w")


def test_a_session_is_found_listed_and_read_by_any_of_its_names(archive: Archive) -> None:
    for text in (SESSION, SESSION[:8], "mine"):
        assert archive.folder(text).id == archive.summary(text).id == SESSION
    assert [summary.id for summary in archive.list()] == [SESSION]
    assert [record.line for record in archive.all_records("mine")] == short_log()
    assert [record.line for record in archive.last_turn("mine")] == short_log()[3:]
    assert [record.line for record in archive.follow("mine", 0)] == short_log()
    assert archive.verify("mine").is_intact


def test_the_folder_of_the_caller_decides_between_two(archive: Archive, tmp_path: Path) -> None:
    store_session(tmp_path, short_log(), "other", workspace_yaml="name: Mine\ncwd: /x\n")
    assert archive.folder("mine").id == SESSION
    assert Archive({"COPILOT_HOME": str(tmp_path)}, cwd="/x").folder("mine").id == "other"
    with pytest.raises(SessionNotFound):
        Archive({"COPILOT_HOME": str(tmp_path)}).folder("mine")


def test_a_session_is_repaired_once(archive: Archive, tmp_path: Path) -> None:
    log = Path(archive.folder("mine").events)
    log.write_bytes(b"rubbish\n" + log.read_bytes())
    assert [record.line for record in archive.all_records("mine")] == short_log()
    assert [finding.kind for finding in archive.repair("mine")] == ["garbage"]
    assert archive.repair("mine") == ()
    assert log.read_bytes() == joined(short_log())


def test_a_session_is_exported_in_known_forms_only(archive: Archive) -> None:
    assert "".join(archive.export("mine", "md")).startswith("# Mine\n")
    assert "".join(archive.export("mine", "json")).startswith("[")
    with pytest.raises(
        UsageError, match="Unknown format 'pdf': choose one of md, html, json, otel"
    ):
        archive.export("mine", "pdf")


def test_a_session_is_copied_deleted_and_restored(archive: Archive) -> None:
    copy = archive.fork("mine", Cut(turn=0), name="copy")
    assert archive.folder("copy").id == copy.id
    assert len(list(archive.all_records("copy"))) == 3
    trashed = archive.delete("copy")
    assert [entry.id for entry in archive.deleted()] == [trashed.id] == [copy.id]
    assert archive.restore(copy.id).path == copy.path
    assert archive.deleted() == []


def test_copying_can_be_switched_off(archive: Archive, tmp_path: Path) -> None:
    for enabled in (True, False):
        settings = {"host": {"forkSessions": {"enabled": enabled}}}
        (tmp_path / "settings.json").write_text(json.dumps(settings))
        if enabled:
            archive.fork("mine")
        else:
            with pytest.raises(UsageError, match="Copying sessions is switched off"):
                archive.fork("mine")


def test_a_log_that_is_no_file_is_not_read(archive: Archive) -> None:
    log = Path(archive.folder("mine").events)
    log.unlink()
    log.mkdir()
    for read in (archive.all_records, archive.last_turn, archive.fork, archive.verify):
        with pytest.raises(ConfigurationError, match="not a file"):
            read("mine")
