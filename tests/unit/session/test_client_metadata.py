"""Texts that SDK clients keep with a session."""

from pathlib import Path

import pytest

from trimtab.contracts.errors import UsageError
from trimtab.session.client_metadata import (
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    Corrupt,
    UnknownVersion,
    read_client_metadata,
    update_client_metadata,
)
from trimtab.session.folder import SessionFolder


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    return SessionFolder(id="s", path=str(tmp_path))


def test_texts_are_set_kept_removed_and_cleared(folder: SessionFolder) -> None:
    assert read_client_metadata(folder) == {}
    update_client_metadata(folder, put={"a": "1", "b": "2"})
    assert update_client_metadata(folder, put={"c": "3"}, remove=["a"]) == {"b": "2", "c": "3"}
    assert read_client_metadata(folder) == {"b": "2", "c": "3"}
    assert update_client_metadata(folder, put={"d": "4"}, clear=True) == {"d": "4"}
    assert read_client_metadata(folder) == {"d": "4"}


@pytest.mark.parametrize(
    ("put", "problem"),
    [
        ({"": "x"}, "keys must not be empty"),
        ({"k\ud800": "x"}, "valid Unicode"),
        ({"k": "x\udfff"}, "valid Unicode"),
        ({"k": "\udc00", "l": "x"}, "valid Unicode"),
        ({"k" * (MAX_KEY_BYTES + 1): "x"}, "key exceeds"),
        ({"k": "x" * (MAX_VALUE_BYTES + 1)}, "value for key 'k' exceeds"),
        ({f"k{n}": "x" for n in range(MAX_ENTRIES + 1)}, "set exceeds"),
    ],
)
def test_texts_that_cannot_be_kept_are_refused_and_change_nothing(
    folder: SessionFolder, put: dict[str, str], problem: str
) -> None:
    update_client_metadata(folder, put={"kept": "yes"})
    with pytest.raises(UsageError, match=problem):
        update_client_metadata(folder, put=put)
    assert read_client_metadata(folder) == {"kept": "yes"}


def test_the_longest_texts_are_kept(folder: SessionFolder) -> None:
    longest = {"k" * MAX_KEY_BYTES: "x" * MAX_VALUE_BYTES, "\ud7ff\ue000": "🙂"}
    assert update_client_metadata(folder, put=longest) == longest


def test_entries_of_several_updates_together_are_limited(folder: SessionFolder) -> None:
    update_client_metadata(folder, put={f"k{n}": "x" for n in range(MAX_ENTRIES)})
    with pytest.raises(UsageError, match="remove some"):
        update_client_metadata(folder, put={"one more": "x"})


def stored(folder: SessionFolder) -> Path:
    return Path(folder.path, "client-metadata.json")


def test_the_file_has_the_form_of_the_reference(folder: SessionFolder) -> None:
    update_client_metadata(folder, put={"a": "1"})
    assert stored(folder).read_bytes() == b'{"version":1,"metadata":{"a":"1"}}'


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"rubbish", Corrupt),
        (b"\xff", Corrupt),
        (b"[]", Corrupt),
        (b'{"metadata":{}}', Corrupt),
        (b'{"version":1,"metadata":{"a":5}}', Corrupt),
        (b'{"version":2,"metadata":{}}', UnknownVersion),
        (b'{"version":0,"metadata":{}}', UnknownVersion),
        (b'{"version":"x"}', UnknownVersion),
    ],
)
def test_a_file_that_no_client_wrote_is_refused_until_it_is_cleared(
    folder: SessionFolder, data: bytes, error: type[Exception]
) -> None:
    stored(folder).write_bytes(data)
    with pytest.raises(error):
        read_client_metadata(folder)
    with pytest.raises(error):
        update_client_metadata(folder, put={"a": "1"})
    assert stored(folder).read_bytes() == data
    assert update_client_metadata(folder, put={"a": "1"}, clear=True) == {"a": "1"}


def test_limits_are_counted_in_bytes(folder: SessionFolder) -> None:
    wide = "é" * (MAX_VALUE_BYTES // 2)
    assert update_client_metadata(folder, put={"é" * (MAX_KEY_BYTES // 2): wide})
    with pytest.raises(UsageError, match="value for key 'k' exceeds"):
        update_client_metadata(folder, put={"k": wide + "x"})
    with pytest.raises(UsageError, match="key exceeds"):
        update_client_metadata(folder, put={"é" * (MAX_KEY_BYTES // 2) + "x": ""})


def test_all_texts_together_fit_into_the_file(folder: SessionFolder) -> None:
    head = len(b'{"version":1,"metadata":{}}')
    texts = dict.fromkeys("abc", "x" * MAX_VALUE_BYTES)
    used = head + sum(MAX_VALUE_BYTES + len('"a":"",') for _ in texts)
    last = MAX_FILE_BYTES - used - len('"d":""')
    assert update_client_metadata(folder, put=texts | {"d": "x" * last})
    assert stored(folder).stat().st_size == MAX_FILE_BYTES
    assert len(read_client_metadata(folder)) == 4
    with pytest.raises(UsageError, match=f"exceeds {MAX_ENTRIES} entries or {MAX_FILE_BYTES}"):
        update_client_metadata(folder, put={"d": "x" * (last + 1)})


def test_as_many_texts_as_allowed_may_be_set_at_once(folder: SessionFolder) -> None:
    full = {f"k{n}": "x" for n in range(MAX_ENTRIES)}
    assert update_client_metadata(folder, put=full) == full
    assert update_client_metadata(folder, put={"new": "x"}, remove=["k0", "k1"])
    assert len(read_client_metadata(folder)) == MAX_ENTRIES - 1
