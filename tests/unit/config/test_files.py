import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trimtab.config.files import cannot, make_private_dir, replace_file, update_file
from trimtab.contracts.errors import ConfigurationError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_replaced_file_has_the_new_bytes_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["settings.json"]


def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_dir(str(tmp_path / "a" / "b"))
        replace_file(str(tmp_path / "a" / "open"), b"")
        os.umask(0o777)
        make_private_dir(str(tmp_path / "a" / "c" / "d"))
        replace_file(str(tmp_path / "a" / "shut"), b"")
    finally:
        os.umask(before)
    assert {mode(tmp_path / "a" / name) for name in ("", "b", "c", "c/d")} == {0o700}
    assert {mode(tmp_path / "a" / name) for name in ("open", "shut")} == {0o600}


def test_a_link_is_followed_and_kept(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "settings.json"
    target.write_bytes(b"old")
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    replace_file(str(link), b"new")
    update_file(str(link), lambda before: (before or b"") + b"er")
    assert link.is_symlink()
    assert target.read_bytes() == b"newer"


def test_an_update_sees_what_is_there_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    update_file(str(path), lambda before: b"first" if before is None else b"wrong")
    path.chmod(0o640)
    update_file(str(path), lambda before: (before or b"") + b" second")
    assert path.read_bytes() == b"first second"
    assert mode(path) == 0o640


def test_an_update_that_changes_nothing_does_not_write(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"same")
    before = path.stat().st_ino
    update_file(str(path), lambda data: data or b"")
    assert path.stat().st_ino == before


def test_a_failing_change_leaves_the_file_and_lets_others_in(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"kept")

    def fail(before: bytes | None) -> bytes:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        update_file(str(path), fail)
    update_file(str(path), lambda before: (before or b"") + b"!")
    assert path.read_bytes() == b"kept!"


def test_what_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="move it away"):
        replace_file(str(tmp_path / "folder"), b"")
    with pytest.raises(ConfigurationError, match="Cannot"):
        replace_file(str(tmp_path / "file" / "below"), b"")
    with pytest.raises(ConfigurationError, match="move it away"):
        make_private_dir(str(tmp_path / "file"))
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [
        (errno.ENOSPC, 1),
        (errno.EDQUOT, 1),
        (errno.EFBIG, 1),
        (errno.EIO, 1),
        (errno.EMFILE, 1),
        (errno.ENFILE, 1),
        (errno.ENOMEM, 1),
        (errno.ESTALE, 1),
        (errno.EACCES, 2),
        (errno.EROFS, 2),
        (errno.ENOTDIR, 2),
        (errno.ENOENT, 2),
    ],
)
def test_only_a_wrong_path_is_a_matter_of_configuration(number: int, exit_code: int) -> None:
    error = cannot("write", "/some/file", OSError(number, os.strerror(number)))
    assert error.exit_code == exit_code
    assert "/some/file" in error.message
    assert isinstance(error, ConfigurationError) == (exit_code == 2)


COUNT = """
import json, sys
from trimtab.config.files import update_file
def change(before):
    data = json.loads(before) if before else {"n": 0, "pad": "x" * 20000}
    data["n"] += 1
    return json.dumps(data).encode()
while True:
    update_file(sys.argv[1], change)
    if sys.argv[2] == "once": break
"""


def python(code: str, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *args])


def test_32_processes_updating_at_once_lose_nothing_and_are_never_seen_half_done(
    tmp_path: Path,
) -> None:
    import json

    path = tmp_path / "settings.json"
    children = [python(COUNT, str(path), "once") for _ in range(32)]
    seen = 0
    while any(child.poll() is None for child in children):
        if path.exists():
            now = json.loads(path.read_bytes())["n"]
            assert now >= seen
            seen = now
    assert [child.returncode for child in children] == [0] * 32
    assert json.loads(path.read_bytes())["n"] == 32


def test_killing_an_updater_at_any_moment_leaves_a_valid_file_and_no_lock(tmp_path: Path) -> None:
    import json

    path = tmp_path / "settings.json"
    for delay in range(5):
        child = python(COUNT, str(path), "forever")
        before = path.stat().st_ino if path.exists() else None
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (not path.exists() or path.stat().st_ino == before):
            pass
        for _ in range(delay * 1000):
            os.getpid()
        child.send_signal(signal.SIGKILL)
        child.wait()
        reached = json.loads(path.read_bytes())["n"]
        update_file(
            str(path), lambda data: json.dumps({"n": json.loads(data or b"")["n"] + 1}).encode()
        )
        assert json.loads(path.read_bytes())["n"] == reached + 1
