"""Texts that SDK clients keep with a session."""

from pathlib import Path

import pytest

from trimtab.contracts.errors import UsageError
from trimtab.session.client_metadata import (
    MAX_ENTRIES,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
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
        ({"k" * (MAX_KEY_BYTES + 1): "x"}, "key exceeds"),
        ({"k": "x" * (MAX_VALUE_BYTES + 1)}, "value for key 'k' exceeds"),
        ({f"k{n}": "x" for n in range(MAX_ENTRIES + 1)}, "set exceeds"),
    ],
)
def test_what_is_too_long_or_too_many_is_refused_and_changes_nothing(
    folder: SessionFolder, put: dict[str, str], problem: str
) -> None:
    update_client_metadata(folder, put={"kept": "yes"})
    with pytest.raises(UsageError, match=problem):
        update_client_metadata(folder, put=put)
    assert read_client_metadata(folder) == {"kept": "yes"}


def test_the_longest_texts_are_kept(folder: SessionFolder) -> None:
    longest = {"k" * MAX_KEY_BYTES: "x" * MAX_VALUE_BYTES}
    assert update_client_metadata(folder, put=longest) == longest


def test_entries_of_several_updates_together_are_limited(folder: SessionFolder) -> None:
    update_client_metadata(folder, put={f"k{n}": "x" for n in range(MAX_ENTRIES)})
    with pytest.raises(UsageError, match="remove some"):
        update_client_metadata(folder, put={"one more": "x"})
