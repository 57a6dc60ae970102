"""A link put in place between the check and the use of a path leads nowhere."""

import os
from pathlib import Path

import pytest

from properties.path_races import race
from trimtab.workspace.exact import open_exact, open_step_by_step

ROUNDS = 200


async def test_no_read_and_no_write_escapes_through_a_swapped_link(tmp_path: Path) -> None:
    escapes, done = await race(tmp_path, ROUNDS)
    assert escapes == 0
    assert done, "no round went through, so nothing was raced"


@pytest.mark.parametrize("open_it", [open_exact, open_step_by_step])
def test_a_link_anywhere_on_the_way_is_refused(tmp_path: Path, open_it: object) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "link").symlink_to("file")
    assert callable(open_it)
    os.close(open_it(str(tmp_path / "folder" / "file"), os.O_RDONLY))
    for way in ("link/file", "folder/link"):
        with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
            open_it(str(tmp_path / way), os.O_RDONLY)
