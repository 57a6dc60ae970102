"""The folder of a session: names that are safe, its plan and its metadata."""

import os
from pathlib import Path

import pytest

from trimtab.contracts.errors import ConfigurationError
from trimtab.session.folder import SessionFolder, is_safe_name


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    return SessionFolder("s", str(tmp_path))


@pytest.mark.parametrize("name", ["a", "a.b", "a-b", "é x", "a."])
def test_plain_names_are_safe(name: str) -> None:
    assert is_safe_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "a/b", "/", "a\\b", "a\0"])
def test_names_that_may_mean_another_folder_are_not(name: str) -> None:
    assert not is_safe_name(name)


def test_the_files_of_a_session_have_their_names(folder: SessionFolder) -> None:
    names = [
        *(folder.events, folder.workspace_file, folder.plan, folder.files, folder.images),
        *(folder.checkpoints, folder.client_skills, folder.blobs, folder.git_objects),
        folder.database,
    ]
    assert [os.path.relpath(name, folder.path) for name in names] == [
        *("events.jsonl", "workspace.yaml", "plan.md", "files", "files/images"),
        *("checkpoints", "client-skills", "blobs", "git-objects", "session.db"),
    ]


def test_a_plan_is_read_if_there_is_one(folder: SessionFolder) -> None:
    assert folder.read_plan() is None
    Path(folder.plan).write_bytes(b"# Plan \xff\n")
    assert folder.read_plan() == "# Plan \ufffd\n"


def test_metadata_that_do_not_exist_are_empty_and_others_must_be_readable(
    folder: SessionFolder,
) -> None:
    assert folder.read_metadata() == {}
    os.mkfifo(folder.workspace_file)
    assert folder.read_metadata() == {}, "a pipe must not block"
    os.unlink(folder.workspace_file)
    os.mkdir(folder.workspace_file)
    with pytest.raises(ConfigurationError, match=r"Cannot read .*workspace\.yaml"):
        folder.read_metadata()


def test_no_descriptor_is_left_open_by_reading(folder: SessionFolder) -> None:
    before = len(os.listdir("/proc/self/fd"))
    Path(folder.workspace_file).write_text("a: 1\n")
    for _ in range(3):
        assert folder.read_metadata() == {"a": 1}
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_update_begins_with_the_id_and_may_set_the_time(folder: SessionFolder) -> None:
    folder.update_metadata(name="x")
    metadata = folder.read_metadata()
    assert (metadata["id"], metadata["name"]) == ("s", "x")
    assert metadata["updated_at"].startswith("20")
    folder.update_metadata(updated_at="2001", name=None)
    assert folder.read_metadata() == {"id": "s", "updated_at": "2001", "name": None}
    Path(folder.workspace_file).write_bytes(b"a: [")
    folder.update_metadata()
    assert set(folder.read_metadata()) == {"id", "updated_at"}
    assert Path(folder.workspace_file + ".damaged").read_bytes() == b"a: ["
