"""The temp folder of a fenced command: what it holds is counted, and all of it removed."""

import mmap
import os
from pathlib import Path

from trimtab.workspace.sandbox.temp_folder import measure_held, remove_folder


def test_a_folder_is_removed_whatever_is_in_it_and_no_link_is_followed(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "temp"
    (kept / "inner").mkdir(parents=True)
    (kept / "inner/file").write_text("text")
    for name in ("0", "1/2/3", "a/0/1", "b/c/d/e"):
        (folder / name).mkdir(parents=True)
    (folder / "2").write_text("a file with a number for its name")
    (folder / "a/0/x").write_text("text")
    os.mkfifo(folder / "pipe")
    for name in ("link", "1/link", "a/0/link"):
        os.symlink(kept, folder / name)
    for name in ("b/c", "b"):
        (folder / name).chmod(0)
    remove_folder(str(folder))
    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "inner/file").read_text() == "text"


def test_a_link_in_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("text")
    os.symlink(tmp_path / "kept", tmp_path / "temp")
    remove_folder(str(tmp_path / "temp"))
    assert (tmp_path / "kept/file").exists()
    remove_folder(str(tmp_path / "missing"))


def test_removed_files_count_while_they_are_open_or_mapped(tmp_path: Path) -> None:
    size = 1 << 20
    own = [os.getpid()]
    _, others = measure_held(str(tmp_path), own, 100)
    for name in ("open", "mapped", "there"):
        (tmp_path / name).write_bytes(bytes(size))
    with open(tmp_path / "mapped", "rb") as file:
        mapped = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
    with open(tmp_path / "open", "rb"):
        os.unlink(tmp_path / "open")
        os.unlink(tmp_path / "mapped")
        held, files = measure_held(str(tmp_path), own, 100)
        assert held >= 3 * size
        assert files == others + 3
    mapped.close()
    assert measure_held(str(tmp_path), own, 100)[1] == others + 1
    assert measure_held(str(tmp_path), [], 1)[1] == 1
