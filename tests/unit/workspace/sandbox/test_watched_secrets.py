"""What others may not read is found again after every change, and not searched for without one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trimtab.workspace.sandbox.watched_secrets import WatchedSecrets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, mode in (("public", 0o644), ("private", 0o600), ("locked", 0o000)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("private")
    deeper = tmp_path / "a" / "b"
    deeper.mkdir(parents=True)
    (deeper / "key").touch(0o600)
    (tmp_path / "a" / "closed").mkdir(0o700)
    (tmp_path / "a" / "closed" / "inside").touch(0o600)
    return tmp_path


@pytest.fixture
def secrets(folder: Path) -> Iterator[WatchedSecrets]:
    watched = WatchedSecrets(str(folder))
    yield watched
    watched.close()


def names(secrets: WatchedSecrets, folder: Path) -> set[str]:
    return {os.path.relpath(path, folder) for path in secrets.find()} - {"locked"}


KNOWN = {"private", "a/b/key", "a/closed"}


def test_secrets_are_found_at_any_depth_if_this_user_could_read_them(
    secrets: WatchedSecrets, folder: Path
) -> None:
    assert names(secrets, folder) == KNOWN
    found = {os.path.basename(path) for path in secrets.find()}
    assert ("locked" in found) == (os.geteuid() == 0)


def test_nothing_is_searched_as_long_as_nothing_changes(
    secrets: WatchedSecrets, folder: Path
) -> None:
    first = secrets.find()
    (folder / "public").write_text("other contents")
    assert secrets.find() is first


def close_file(folder: Path) -> None:
    (folder / "a" / "b" / "plain").chmod(0o600)


def add_file(folder: Path) -> None:
    (folder / "a" / "b" / "new").touch(0o600)


def add_folders(folder: Path) -> None:
    (folder / "a" / "c" / "d").mkdir(parents=True)
    (folder / "a" / "c" / "d" / "new").touch(0o600)


def move_in(folder: Path) -> None:
    (folder / "a" / "closed" / "inside").rename(folder / "a" / "new")


def replace_file(folder: Path) -> None:
    (folder / "a" / "closed" / "inside").rename(folder / "public")


@pytest.mark.parametrize(
    ("change", "new"),
    [
        (close_file, "a/b/plain"),
        (add_file, "a/b/new"),
        (add_folders, "a/c/d/new"),
        (move_in, "a/new"),
        (replace_file, "public"),
    ],
)
def test_every_change_is_seen(
    secrets: WatchedSecrets, folder: Path, change: Callable[[Path], None], new: str
) -> None:
    (folder / "a" / "b" / "plain").touch(0o644)
    assert names(secrets, folder) == KNOWN
    change(folder)
    assert names(secrets, folder) == {*KNOWN, new}
    assert names(secrets, folder) == {*KNOWN, new}


def test_another_folder_in_the_same_place_is_seen(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "key").touch(0o600)
    secrets = WatchedSecrets(str(tmp_path / "settings"))
    assert not secrets.find()
    (tmp_path / "settings").rename(tmp_path / "old")
    (tmp_path / "other").rename(tmp_path / "settings")
    assert secrets.find() == (str(tmp_path / "settings" / "key"),)
    secrets.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount: run the tests as root")
def test_what_is_mounted_over_a_folder_is_seen(secrets: WatchedSecrets, folder: Path) -> None:
    assert names(secrets, folder) == KNOWN
    inside = folder / "mounted"
    inside.mkdir()
    assert names(secrets, folder) == KNOWN
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700", "none", inside], check=True)
    try:
        assert names(secrets, folder) == {*KNOWN, "mounted"}
    finally:
        subprocess.run(["umount", inside], check=True)
    assert names(secrets, folder) == KNOWN


def test_each_call_searches_where_nothing_can_be_watched(folder: Path) -> None:
    secrets = WatchedSecrets(str(folder), most=1)
    assert names(secrets, folder) == KNOWN
    (folder / "public").chmod(0o600)
    assert names(secrets, folder) == {*KNOWN, "public"}


FORKED = """
import os, sys
from trimtab.workspace.sandbox.watched_secrets import WatchedSecrets
secrets = WatchedSecrets(sys.argv[1])
before = len(secrets.find())
pid = os.fork()
if not pid:
    os.chmod(sys.argv[1] + "/public", 0o600)
print(len(secrets.find()) - before, flush=True) if not pid else os.waitpid(pid, 0)
if pid:
    print(len(secrets.find()) - before)
"""


def test_a_forked_process_takes_no_report_from_the_other(folder: Path) -> None:
    argv = [sys.executable, "-c", FORKED, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]
