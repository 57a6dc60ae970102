"""Capturing a command's output within bounds."""

from pathlib import Path

import pytest

from trimtab.workspace.capture import IN_MEMORY, Capture, LogFile


def test_little_output_stays_in_memory(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path / "saved"))
    capture.add(b"one\n")
    assert capture.take(100) == (b"one\n", 4, None)
    assert not capture.has_unread()
    capture.add(b"two\nprompt: ")
    assert capture.last_line() == b"prompt: "
    assert capture.take(100) == (b"two\nprompt: ", 12, None)
    capture.close()
    assert list(tmp_path.iterdir()) == []


def test_more_than_was_asked_for_is_saved_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    capture = Capture(str(path))
    capture.add(b"0123456789")
    assert capture.take(4) == (b"0123", 10, str(path))
    assert path.read_bytes() == b"0123456789"


@pytest.mark.parametrize("closed", [False, True])
def test_much_output_goes_to_a_file(tmp_path: Path, closed: bool) -> None:
    path = tmp_path / "saved"
    capture = Capture(str(path))
    for i in range(10):
        capture.add(bytes([48 + i]) * (IN_MEMORY // 4))
    if closed:
        capture.close()
    beginning, size, saved = capture.take(10)
    assert (beginning, size, saved) == (b"0" * 10, capture.kept, str(path))
    assert capture.last_line().endswith(b"9")
    assert path.stat().st_size == 10 * (IN_MEMORY // 4)
    assert capture.take(10) == (b"", 0, None)


def test_output_beyond_the_bound_is_counted_not_kept(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path / "saved"), max_size=IN_MEMORY)
    capture.add(b"x" * (IN_MEMORY + 1))
    assert capture.is_full()
    capture.add(b"y" * 5)
    assert (capture.kept, capture.lost) == (IN_MEMORY + 1, 5)
    assert capture.last_line().endswith(b"xyyyyy")


def test_without_room_for_a_file_the_beginning_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    capture = Capture(str(tmp_path / "file/below"))
    capture.add(b"a" * 100)
    capture.add(b"b" * IN_MEMORY)
    assert capture.take(10) == (b"a" * 10, 100, None)
    assert capture.lost == IN_MEMORY


def test_a_log_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(str(path))
    assert log.take(10) == (b"", 0, None)
    path.write_bytes(b"one\n")
    assert log.has_unread()
    assert log.take(10) == (b"one\n", 4, None)
    with path.open("ab") as file:
        file.write(b"two\n" * 10)
    assert log.take(10) == (b"two\ntwo\ntw", 40, str(path))
