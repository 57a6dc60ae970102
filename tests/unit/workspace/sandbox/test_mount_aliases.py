"""The names that a file has by other mounts of its file system."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.workspace.sandbox.mount_aliases import find_aliases, list_aliases, read_table

TABLE = """\
1 0 8:1 / / rw - ext4 /dev/sda rw
2 1 0:5 / /proc rw - proc proc rw
3 1 8:1 /home/me/my\\040work /mnt/w rw - ext4 /dev/sda rw
4 1 8:2 / /data rw - ext4 /dev/sdb rw
5 1 8:2 /deep /data/again rw - ext4 /dev/sdb rw
6 1 8:1 /home /data/covered rw - ext4 /dev/sda rw
"""


@pytest.mark.parametrize(
    ("path", "aliases"),
    [
        ("/home/me/my work/.env", ["/mnt/w/.env", "/data/covered/me/my work/.env"]),
        ("/mnt/w/.env", ["/home/me/my work/.env", "/data/covered/me/my work/.env"]),
        ("/data/deep/x", ["/data/again/x"]),
        ("/data/again", ["/data/deep"]),
        ("/home", ["/data/covered"]),
        ("/etc/passwd", []),
    ],
)
def test_a_path_is_found_by_every_mount_that_shows_it(path: str, aliases: list[str]) -> None:
    assert list(list_aliases(path, read_table(TABLE.splitlines()))) == aliases


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount: run as root")
def test_a_mounted_folder_is_found_in_its_other_place(tmp_path: Path) -> None:
    for name in ("work", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "work/.env").write_text("text")
    script = (
        "from trimtab.workspace.sandbox.mount_aliases import find_aliases\n"
        f"print(find_aliases(['{tmp_path}/work/.env', '{tmp_path}/work/missing']))"
    )
    bound = f"mount --bind {tmp_path}/work {tmp_path}/other && exec '{sys.executable}' -c \"$1\""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", bound, "sh", script], capture_output=True, check=True
    )
    assert done.stdout.decode() == f"['{tmp_path}/other/.env']\n"
    assert find_aliases([f"{tmp_path}/work/.env"]) == []
