"""Folders that clients name must exist."""

from pathlib import Path

import pytest

from trimtab.contracts.errors import UsageError
from trimtab.transports.rpc.folders import require_folder, require_folders


def test_a_folder_is_returned_whole(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert require_folder(str(tmp_path)) == str(tmp_path)
    assert require_folders(["in", str(tmp_path)], str(tmp_path)) == (
        str(tmp_path / "in"),
        str(tmp_path),
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "Directory does not exist or cannot be accessed: nowhere"),
        ("/no/where", "Directory does not exist or cannot be accessed: /no/where"),
        ("file", "Not a directory: file"),
        ("", "Directory path must be absolute"),
    ],
)
def test_others_are_refused(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=words):
        require_folder(path, str(tmp_path))


def test_a_relative_path_needs_a_base(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be absolute: in; give the whole path"):
        require_folder("in")
