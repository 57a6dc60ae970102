"""The arguments by which bubblewrap becomes a fence."""

import pytest

from trimtab.workspace.sandbox.fence_bubblewrap import drop_nested


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
