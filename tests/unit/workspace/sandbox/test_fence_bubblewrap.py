"""The arguments by which bubblewrap becomes a fence."""

import os
from pathlib import Path

import pytest

from trimtab.workspace.sandbox.fence_bubblewrap import drop_nested, find_secrets


def test_only_secrets_that_this_user_could_read_are_covered(tmp_path: Path) -> None:
    for name, mode in (("public", 0o644), ("private", 0o600), ("locked", 0o000)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("private")
    found = {os.path.basename(path) for path in find_secrets(str(tmp_path))}
    assert found == {"private", "locked"} if os.geteuid() == 0 else found == {"private"}


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["/etc", "/etc/ssl", "/usr"], ["/etc", "/usr"]),
        (["/a", "/ab", "/a/b"], ["/a", "/ab"]),
        ([], []),
    ],
)
def test_a_folder_below_another_needs_no_mount(paths: list[str], kept: list[str]) -> None:
    assert drop_nested(sorted(paths)) == kept
