"""Reading and replacing files."""

import asyncio
import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from toolkit import Bench
from trimtab.contracts.workspace import StaleFile
from trimtab.workspace import files


def test_a_stale_stamp_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    stamp = files.load(str(path)).stamp
    path.write_bytes(b"person's")
    with pytest.raises(StaleFile):
        files.write(str(path), b"agent's", stamp=stamp)
    assert path.read_bytes() == b"person's"
    path.unlink()
    with pytest.raises(StaleFile):
        files.write(str(path), b"agent's", stamp=stamp)
    assert not path.exists()


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    with pytest.raises(FileExistsError):
        files.write(str(path), b"two", new=True)
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [b"a" * 500_000, b"b" * 300_000]
    path.write_bytes(contents[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(100):
        files.write(str(path), contents[i % 2])
    over.set()
    reader.join()
    assert seen <= set(contents)


def test_owner_and_special_bits_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    if os.getuid() == 0:
        os.chown(path, 1234, 5678)
    path.chmod(0o2755)
    before = path.stat()
    files.write(str(path), b"two")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )


def test_writing_through_a_dangling_link_makes_its_target(tmp_path: Path) -> None:
    os.symlink("sub/target", tmp_path / "link")
    files.write(os.path.realpath(tmp_path / "link"), b"x", new=True)
    assert (tmp_path / "sub/target").read_bytes() == b"x"
    assert (tmp_path / "link").is_symlink()


def test_overwriting_in_place_keeps_the_inode_and_ends_where_it_should(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a long line\n")
    inode = path.stat().st_ino
    files.overwrite(str(path), b"short\n")
    assert (path.read_bytes(), path.stat().st_ino) == (b"short\n", inode)
    files.overwrite(str(path), b"longer than before\n")
    assert path.read_bytes() == b"longer than before\n"
    files.overwrite(str(path), b"")
    assert path.read_bytes() == b""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.write(str(path), b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["a"]


def test_a_fifo_that_took_a_files_place_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError) as caught:
        files.load(str(tmp_path / "fifo"))
    assert caught.value.errno == errno.EINVAL


def test_what_is_there_is_told_without_opening(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"123")
    assert files.inspect(str(tmp_path / "file")).size == 3
    assert files.inspect(str(tmp_path)).kind == "directory"
    assert files.inspect(str(tmp_path / "file/below")).kind == "missing"
    assert files.inspect("/proc/self/mem").kind == "other"
    assert files.inspect("a\0b").kind == "other"
    assert files.inspect("x" * 5000).kind == "other"


@pytest.mark.parametrize(
    ("first", "last", "wanted"),
    [(1, 2, b"1\n2\n"), (3, None, b"3\n4"), (4, 9, b"4"), (5, None, b""), (2, 2, b"2\n")],
)
def test_lines_are_found_in_a_stream(
    tmp_path: Path, first: int, last: int | None, wanted: bytes
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n2\n3\n4")
    assert files.read_lines(str(path), first, last, 1000).data == wanted


def test_lines_stop_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 5_000_000)
    lines = files.read_lines(str(path), 1, 1, 1000)
    assert (len(lines.data), lines.complete) == (1000, False)


async def test_large_files_are_written_whole_even_when_cancelled(bench: Bench) -> None:
    data = b"x" * 20_000_000
    path = bench.write("big", b"old")
    task = asyncio.ensure_future(bench.workspace.write(str(path), data))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert path.read_bytes() in (b"old", data)
    assert os.listdir(bench.root) == ["big"]


async def test_paths_are_resolved_against_the_root(bench: Bench) -> None:
    resolve = bench.workspace.resolve
    assert resolve("a/./b//c") == str(bench.path("a/b/c"))
    assert resolve("/etc/hosts") == "/etc/hosts"
    assert resolve("~/x") == os.environ["HOME"] + "/x"
    bench.path("far/away").mkdir(parents=True)
    os.symlink("far/away", bench.path("link"))
    assert resolve("link/../x") == str(bench.path("far/x"))
    assert resolve("link/x") == str(bench.path("link/x"))


def test_modes_of_saved_output_are_private(tmp_path: Path) -> None:
    from trimtab.workspace.capture import Capture

    capture = Capture(str(tmp_path / "deep/saved.txt"))
    capture.add(b"x" * 300_000)
    assert stat.S_IMODE((tmp_path / "deep/saved.txt").stat().st_mode) == 0o600
    capture.close()
