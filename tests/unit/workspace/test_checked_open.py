"""A symlink created between the check and the use of a path is not followed."""

import os
from pathlib import Path

import pytest

from properties.path_races import race
from trimtab.workspace.checked_open import open_exact
from trimtab.workspace.local import LocalWorkspace

ROUNDS = 200


async def test_no_read_and_no_write_escapes_through_a_swapped_link(tmp_path: Path) -> None:
    escapes, done = await race(tmp_path, ROUNDS)
    assert escapes == 0
    assert done, "no round went through, so nothing was raced"


def test_a_link_anywhere_on_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "link").symlink_to("file")
    os.close(open_exact(str(tmp_path / "folder" / "file"), os.O_RDONLY))
    for way in ("link/file", "folder/link"):
        with pytest.raises(OSError, match="symbolic links") as caught:
            open_exact(str(tmp_path / way), os.O_RDONLY)
        assert caught.value.filename == str(tmp_path / way)
    with pytest.raises(NotADirectoryError):
        open_exact(str(tmp_path / "folder" / "file" / "below"), os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        open_exact(str(tmp_path / "gone" / "file"), os.O_RDONLY)


async def test_a_link_is_neither_removed_nor_moved_and_links_above_are_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "to-file").symlink_to("file")
    workspace = LocalWorkspace(root=str(tmp_path), files=str(tmp_path / "files"))
    for refused in ("folder/to-file", "link", "folder"):
        with pytest.raises(OSError, match="link"):
            await workspace.remove(str(tmp_path / refused))
        with pytest.raises(OSError, match="link"):
            await workspace.move(str(tmp_path / refused), str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError):
        await workspace.remove(str(tmp_path / "nowhere" / "file"))
    assert not (tmp_path / "nowhere").exists()
    await workspace.move(str(tmp_path / "link" / "file"), str(tmp_path / "new" / "file"))
    (tmp_path / "taken").write_text("kept")
    with pytest.raises(FileExistsError):
        await workspace.move(str(tmp_path / "new" / "file"), str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_text() == "kept"
    await workspace.remove(str(tmp_path / "new" / "file"))
    assert os.listdir(tmp_path / "new") == []
    await workspace.aclose()
